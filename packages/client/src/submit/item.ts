// An item as producers write it, and as one line of POST /v1/items.
import type { ItemInput } from '@fabric/protocol'

export interface SubmitItem {
  /** Chosen by the producer; known within its job (S36), which is what makes a resend safe. */
  readonly id: string
  /** Default: the job's. */
  readonly model?: number | undefined
  /** Token ids, special tokens included. */
  readonly tokens?: ArrayLike<number> | undefined
  /** Opaque bytes (or their base64), with the `length` in tokens that they stand for. */
  readonly payload?: Uint8Array | string | undefined
  readonly length?: number | undefined
  /** For a broker that has a tokenizer for the model. */
  readonly text?: string | undefined
}

const base64 = (bytes: Uint8Array) =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')

/** Typed arrays would become objects in JSON; joined they are the same numbers. */
const tokensJson = (tokens: ArrayLike<number>): string =>
  ArrayBuffer.isView(tokens) ? `[${(tokens as Int32Array).join(',')}]` : JSON.stringify(tokens)

/** One line with its line feed. What is wrong with an item the broker says: it alone knows its limits. */
export function encodeItem(item: SubmitItem): string {
  const { id, model, tokens, payload, length, text } = item
  const rest: Partial<ItemInput> & { text?: string | undefined } = {
    id,
    ...(model === undefined ? {} : { model }),
    ...(length === undefined ? {} : { length }),
    ...(text === undefined ? {} : { text }),
    ...(payload === undefined
      ? {}
      : { payload: typeof payload === 'string' ? payload : base64(payload) }),
  }
  const head = JSON.stringify(rest)
  if (tokens === undefined) return `${head}\n`
  return `${head.slice(0, -1)},"tokens":${tokensJson(tokens)}}\n`
}

/** Tokens that the item stands for; 0 when it does not say. */
export const itemTokens = (item: SubmitItem): number => item.tokens?.length ?? item.length ?? 0

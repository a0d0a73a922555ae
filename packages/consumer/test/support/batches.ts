// Bytes of a batch, as a broker writes them.
import {
  type BatchView,
  type Layout,
  openBatch,
  planBatch,
  writeBatchHeader,
} from '@fabric/protocol'

export interface TestItem {
  readonly id?: string
  readonly tokens: readonly number[]
  readonly payload?: string
}

export interface TestBatch {
  readonly batch?: number
  readonly brokerLife?: bigint
  readonly layout?: Layout
  readonly attempt?: number
  readonly roundTo?: number
  readonly items: readonly TestItem[]
}

const utf8 = new TextEncoder()

export function encodeBatch(test: TestBatch): ArrayBuffer {
  const { items, layout = 'padded', roundTo = 8 } = test
  const longest = Math.max(...items.map(({ tokens }) => tokens.length))
  const ids = items.map(({ id }, i) => utf8.encode(id ?? `item-${i}`))
  const payloads = items.map(({ payload }) => utf8.encode(payload ?? ''))
  const bytes = (parts: readonly Uint8Array[]) =>
    parts.reduce((sum, part) => sum + part.byteLength, 0)
  const plan = planBatch({
    layout,
    size: items.length,
    paddedLength: layout === 'padded' ? Math.ceil(longest / roundTo) * roundTo : 0,
    actualTokens: items.reduce((sum, { tokens }) => sum + tokens.length, 0),
    idBytes: bytes(ids),
    payloadBytes: items.some(({ payload }) => payload !== undefined) ? bytes(payloads) : null,
  })
  const buffer = new ArrayBuffer(plan.totalBytes)
  const { batch = 1, brokerLife = 1n, attempt = 0 } = test
  writeBatchHeader(buffer, 0, { batch, brokerLife, model: 1, attempt }, plan)
  writeList(buffer, plan.idEndsAt, ids)
  if (plan.payloadEndsAt > 0) writeList(buffer, plan.payloadEndsAt, payloads)
  new Int32Array(buffer, plan.lengthsAt, items.length).set(items.map(({ tokens }) => tokens.length))
  let at = plan.inputIdsAt
  for (const { tokens } of items) {
    new Int32Array(buffer, at, tokens.length).set(tokens)
    at += 4 * (layout === 'padded' ? plan.paddedLength : tokens.length)
  }
  return buffer
}

export const viewOf = (test: TestBatch): BatchView => openBatch(encodeBatch(test))

function writeList(buffer: ArrayBuffer, at: number, parts: readonly Uint8Array[]): void {
  const ends = new Uint32Array(buffer, at, parts.length)
  let end = 0
  parts.forEach((part, i) => {
    new Uint8Array(buffer, at + 4 * parts.length + end).set(part)
    end += part.byteLength
    ends[i] = end
  })
}

/** Tokens 1, 2, 3, … of the given number. */
export const count = (length: number): number[] => Array.from({ length }, (_, i) => i + 1)

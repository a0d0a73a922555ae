// Items for tests of the store: columns as HTTP hands them in, of bodies that can be told apart.
import type { SubmitBlock } from '@fabric/core'
import { packedBytes, packItems, unpackItems } from '../../../src/storage/columns.ts'
import type { ItemColumns } from '../../../src/storage/item-block.ts'
import type { LoadedItems, SettledItem, StoredJob } from '../../../src/storage/store.ts'

export interface TestItem {
  readonly id: string
  readonly model: number
  readonly length: number
  /** Bytes; null: the item has tokens. */
  readonly payload: Uint8Array | null
  /** First token; those that follow count up. */
  readonly seed: number
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()

export const item = (id: string, length: number, more: Partial<TestItem> = {}): TestItem => ({
  id,
  length,
  model: 1,
  payload: null,
  seed: 7,
  ...more,
})

export const tokensOf = ({ length, seed }: TestItem): number[] =>
  Array.from({ length }, (_, i) => seed + i)

export function blockOf(job: number, items: readonly TestItem[]): SubmitBlock {
  const ids = items.map(({ id }) => encoder.encode(id))
  const withPayload = items.some(({ payload }) => payload !== null)
  const ends = (lengths: readonly number[]) => {
    let end = 0
    return Uint32Array.from(lengths, (length) => {
      end += length
      return end
    })
  }
  return {
    job,
    count: items.length,
    model: Int32Array.from(items, ({ model }) => model),
    lengths: Int32Array.from(items, ({ length }) => length),
    tokens: Int32Array.from(items.flatMap((one) => (one.payload === null ? tokensOf(one) : []))),
    ids: Uint8Array.from(ids.flatMap((id) => [...id])),
    idEnds: ends(ids.map(({ length }) => length)),
    payloads: withPayload
      ? Uint8Array.from(items.flatMap(({ payload }) => [...(payload ?? [])]))
      : null,
    payloadEnds: withPayload ? ends(items.map(({ payload }) => payload?.length ?? 0)) : null,
  }
}

/** As they come to the writing thread. */
export function columnsOf(block: SubmitBlock, sequences: Float64Array): ItemColumns {
  const buffer = new SharedArrayBuffer(packedBytes(block))
  packItems(block.job, block, sequences, buffer)
  return unpackItems(buffer)
}

/** What was read, item by item, with its sequence. */
export function itemsOf(loaded: LoadedItems): (TestItem & { sequence: number })[] {
  const { block, sequences } = loaded
  let token = 0
  return Array.from(sequences, (sequence, i) => {
    const from = (ends: Uint32Array) => (i === 0 ? 0 : ends[i - 1])
    const payload =
      block.payloads === null
        ? new Uint8Array(0)
        : block.payloads.slice(from(block.payloadEnds!), block.payloadEnds![i])
    const one = {
      id: decoder.decode(block.ids.subarray(from(block.idEnds), block.idEnds[i])),
      model: block.model[i],
      length: block.lengths[i],
      payload: payload.length > 0 ? payload : null,
      seed: payload.length > 0 ? 7 : block.tokens[token],
      sequence,
    }
    if (one.payload === null) {
      const expected = tokensOf(one)
      if (!expected.every((value, at) => block.tokens[token + at] === value))
        throw new Error(`the tokens of ${one.id} are not its own`)
      token += one.length
    }
    return one
  })
}

export const shapeOf = ({ model, length }: TestItem) => ({
  model,
  paddedLength: Math.ceil(length / 8) * 8,
})

export const job = (number: number, more: Partial<StoredJob> = {}): StoredJob => ({
  number,
  id: `job-${number}`,
  model: 1,
  weight: 1,
  createdAtMs: 1000,
  state: 'open',
  paused: false,
  cancelled: false,
  endedAtMs: null,
  ...more,
})

export const settled = (
  jobNumber: number,
  sequence: number,
  one: TestItem,
  value = one.id,
): SettledItem => ({
  job: jobNumber,
  sequence,
  shape: shapeOf(one),
  record: {
    status: 'completed',
    attempts: 1,
    truncatedTo: 0,
    encoding: 1,
    id: encoder.encode(one.id),
    value: encoder.encode(value),
  },
})

export const textOf = (bytes: Uint8Array): string => decoder.decode(bytes)

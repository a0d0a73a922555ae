// The results message: how items of one batch ended, with their values.
//
//   0 u64 batch   8 u64 broker life   16 u32 count   20 u32 zero
//  24 u32[count] index in the batch    . u32[count] truncated to (tokens, 0 = whole)
//   . u32[count] value ends            . u8[count] outcome   . u8[count] encoding
//   . values, one after another, from the next multiple of 8
import { FabricError } from './errors.js'

/** S23. */
export const Outcome = { completed: 0, failed: 1, retry: 2, nack: 3 } as const
export type Outcome = (typeof Outcome)[keyof typeof Outcome]

export const Encoding = { none: 0, bytes: 1, float32: 2, json: 3, error: 4 } as const
export type Encoding = (typeof Encoding)[keyof typeof Encoding]

export interface ItemResult {
  readonly index: number
  readonly outcome: Outcome
  readonly encoding: Encoding
  readonly value: Uint8Array
  readonly truncatedTo: number
}

export interface ResultsMessage {
  readonly batch: number
  readonly brokerLife: bigint
  readonly count: number
  readonly index: Uint32Array
  readonly truncatedTo: Uint32Array
  readonly outcome: Uint8Array
  readonly encoding: Uint8Array
  /** Value of entry i: a view into the message, valid as long as it. */
  value(i: number): Uint8Array
}

const HEADER_BYTES = 24
const BYTES_PER_ITEM = 14
const align8 = (n: number) => Math.ceil(n / 8) * 8

/** Body of a results frame; its buffer is its own and can be transferred. */
export function encodeResults(
  batch: number,
  brokerLife: bigint,
  results: readonly ItemResult[],
): Uint8Array {
  const count = results.length
  const valuesAt = align8(HEADER_BYTES + BYTES_PER_ITEM * count)
  let bytes = 0
  for (const result of results) bytes += result.value.byteLength
  const body = new Uint8Array(valuesAt + bytes)
  const view = new DataView(body.buffer)
  view.setBigUint64(0, BigInt(batch), true)
  view.setBigUint64(8, brokerLife, true)
  view.setUint32(16, count, true)
  let end = 0
  results.forEach((result, i) => {
    body.set(result.value, valuesAt + end)
    end += result.value.byteLength
    view.setUint32(HEADER_BYTES + 4 * i, result.index, true)
    view.setUint32(HEADER_BYTES + 4 * (count + i), result.truncatedTo, true)
    view.setUint32(HEADER_BYTES + 4 * (2 * count + i), end, true)
    body[HEADER_BYTES + 12 * count + i] = result.outcome
    body[HEADER_BYTES + 13 * count + i] = result.encoding
  })
  return body
}

/** @throws FabricError FABRIC_PROTOCOL when the bytes are not a results message. */
export function decodeResults(body: Uint8Array): ResultsMessage {
  const bad = (why: string) =>
    new FabricError('FABRIC_PROTOCOL', `results: ${why}`, { field: 'results' })
  if (body.byteLength < HEADER_BYTES) throw bad('too short')
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength)
  const count = view.getUint32(16, true)
  const valuesAt = align8(HEADER_BYTES + BYTES_PER_ITEM * count)
  if (valuesAt > body.byteLength) throw bad(`${count} entries do not fit`)
  const column = (k: number) => {
    const values = new Uint32Array(count)
    for (let i = 0; i < count; i++)
      values[i] = view.getUint32(HEADER_BYTES + 4 * (k * count + i), true)
    return values
  }
  const ends = column(2)
  const outcome = body.slice(HEADER_BYTES + 12 * count, HEADER_BYTES + 13 * count)
  const encoding = body.slice(HEADER_BYTES + 13 * count, HEADER_BYTES + 14 * count)
  for (let i = 0; i < count; i++) {
    if (ends[i] < (i === 0 ? 0 : ends[i - 1]) || valuesAt + ends[i] > body.byteLength)
      throw bad(`value ${i} lies outside`)
    if (outcome[i] > Outcome.nack || encoding[i] > Encoding.error)
      throw bad(`entry ${i} has an unknown outcome or encoding`)
    if (encoding[i] === Encoding.float32 && (ends[i] - (i === 0 ? 0 : ends[i - 1])) % 4 !== 0)
      throw bad(`value ${i} is no float32 row`)
  }
  return {
    batch: Number(view.getBigUint64(0, true)),
    brokerLife: view.getBigUint64(8, true),
    count,
    index: column(0),
    truncatedTo: column(1),
    outcome,
    encoding,
    value: (i) => body.subarray(valuesAt + (i === 0 ? 0 : ends[i - 1]), valuesAt + ends[i]),
  }
}

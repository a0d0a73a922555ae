// A block: the items of one append, job and disk shape, in columns. It is written once and never
// changed; what of it is settled stands in its marks (block-marks.ts).
//
// Little-endian. u32 magic, u32 crc32 of all that follows it, u32 count, u32 flags (1: payloads, 2: deadlines),
// u32 bytes of ids, u32 tokens, u32 bytes of payloads, u32 zero, f64 acceptedAtMs, f64 first sequence;
// then the columns, count entries each: i32 lengths, u32 sequence less the first, u32 id ends,
// u32 payload ends (with flag 1), i32 milliseconds from acceptance to the deadline, 0 = none (with flag
// 2); i32 tokens; payload bytes; id bytes. A column that no item of the block uses is left out.
import { crc32 } from 'node:zlib'
import type { SubmitBlock } from '@fabric/core'

const MAGIC = 0x42494631 // 1FIB
const HEADER_BYTES = 48
const WITH_PAYLOADS = 1
const WITH_DEADLINES = 2

/** Sixteen pages of LMDB with its page header: larger values cost it more to find room for. */
const BLOCK_BYTES_MAX = 16 * 4096 - 64
const BLOCK_ITEMS_MAX = 1024

/** Items to write: columns of a submission, and where each item's tokens begin in them. */
export interface ItemColumns extends SubmitBlock {
  readonly sequences: Float64Array
  readonly tokenStarts: Uint32Array
}

const startOf = (ends: Uint32Array, row: number) => (row === 0 ? 0 : ends[row - 1])
const payloadBytesOf = ({ payloadEnds }: SubmitBlock, row: number) =>
  payloadEnds === null ? 0 : payloadEnds[row] - startOf(payloadEnds, row)

/** How many of the rows from `from` on make the next block. */
export function rowsOfBlock(items: ItemColumns, rows: readonly number[], from: number): number {
  let bytes = HEADER_BYTES
  let count = 0
  for (let i = from; i < rows.length && count < BLOCK_ITEMS_MAX; i++) {
    const row = rows[i]
    const idBytes = items.idEnds[row] - startOf(items.idEnds, row)
    const payloadBytes = payloadBytesOf(items, row)
    bytes += 20 + idBytes + (payloadBytes === 0 ? 4 * items.lengths[row] : payloadBytes)
    if (count > 0 && bytes > BLOCK_BYTES_MAX) break
    count += 1
  }
  return count
}

export function haveDeadline(
  { deadlineMs }: SubmitBlock,
  rows: readonly number[],
  from: number,
  count: number,
): boolean {
  if (deadlineMs == null) return false
  for (let i = from; i < from + count; i++) if (deadlineMs[rows[i]] > 0) return true
  return false
}

let scratch = new ArrayBuffer(1 << 17)

/** The block's bytes, valid until the next call. */
export function encodeBlock(
  items: ItemColumns,
  rows: readonly number[],
  from: number,
  count: number,
  acceptedAtMs: number,
): Buffer {
  let tokens = 0
  let idBytes = 0
  let payloadBytes = 0
  for (let i = from; i < from + count; i++) {
    const row = rows[i]
    const payload = payloadBytesOf(items, row)
    payloadBytes += payload
    if (payload === 0) tokens += items.lengths[row]
    idBytes += items.idEnds[row] - startOf(items.idEnds, row)
  }
  const withPayloads = payloadBytes > 0
  const withDeadlines = haveDeadline(items, rows, from, count)
  const columns = 3 + Number(withPayloads) + Number(withDeadlines)
  const tokensAt = HEADER_BYTES + 4 * columns * count
  const payloadsAt = tokensAt + 4 * tokens
  const idsAt = payloadsAt + payloadBytes
  const size = idsAt + idBytes
  // A whole number of words, whatever the item.
  if (scratch.byteLength < size) scratch = new ArrayBuffer(8 * Math.ceil(size / 4))
  const bytes = Buffer.from(scratch, 0, size)
  const words = new Int32Array(scratch)
  const first = items.sequences[rows[from]]
  words[2] = count
  words[3] = (withPayloads ? WITH_PAYLOADS : 0) | (withDeadlines ? WITH_DEADLINES : 0)
  words[4] = idBytes
  words[5] = tokens
  words[6] = payloadBytes
  words[7] = 0
  bytes.writeDoubleLE(acceptedAtMs, 32)
  bytes.writeDoubleLE(first, 40)
  const column = HEADER_BYTES / 4
  let token = tokensAt / 4
  let payload = 0
  let id = 0
  for (let i = 0; i < count; i++) {
    const row = rows[from + i]
    const idStart = startOf(items.idEnds, row)
    bytes.set(items.ids.subarray(idStart, items.idEnds[row]), idsAt + id)
    id += items.idEnds[row] - idStart
    words[column + i] = items.lengths[row]
    words[column + count + i] = items.sequences[row] - first
    words[column + 2 * count + i] = id
    const ofPayload = payloadBytesOf(items, row)
    if (ofPayload === 0) {
      const start = items.tokenStarts[row]
      words.set(items.tokens.subarray(start, start + items.lengths[row]), token)
      token += items.lengths[row]
    } else {
      const end = items.payloadEnds![row]
      bytes.set(items.payloads!.subarray(end - ofPayload, end), payloadsAt + payload)
      payload += ofPayload
    }
    if (withPayloads) words[column + 3 * count + i] = payload
    if (withDeadlines) words[column + (columns - 1) * count + i] = items.deadlineMs![row]
  }
  words[0] = MAGIC
  words[1] = crc32(bytes.subarray(8))
  return bytes
}

/** A block read back; the columns are views of `bytes`, which the caller owns and aligned to 8. */
export interface ItemBlock {
  readonly count: number
  readonly acceptedAtMs: number
  readonly firstSequence: number
  readonly lengths: Int32Array
  readonly sequenceDeltas: Uint32Array
  readonly idEnds: Uint32Array
  readonly payloadEnds: Uint32Array | null
  readonly deadlineMs: Int32Array | null
  readonly tokens: Int32Array
  readonly payloads: Uint8Array | null
  readonly ids: Uint8Array
}

/** null: damaged. */
export function decodeBlock(bytes: Uint8Array): ItemBlock | null {
  if (bytes.byteLength < HEADER_BYTES) return null
  const { buffer, byteOffset: at } = bytes
  const view = new DataView(buffer, at, bytes.byteLength)
  if (view.getUint32(0, true) !== MAGIC) return null
  if (view.getUint32(4, true) !== crc32(bytes.subarray(8))) return null
  const count = view.getUint32(8, true)
  const flags = view.getUint32(12, true)
  const withPayloads = (flags & WITH_PAYLOADS) !== 0
  const withDeadlines = (flags & WITH_DEADLINES) !== 0
  const columns = 3 + Number(withPayloads) + Number(withDeadlines)
  const idBytes = view.getUint32(16, true)
  const tokens = view.getUint32(20, true)
  const payloadBytes = view.getUint32(24, true)
  const tokensAt = HEADER_BYTES + 4 * count * columns
  const payloadsAt = tokensAt + 4 * tokens
  const idsAt = payloadsAt + payloadBytes
  if (idsAt + idBytes !== bytes.byteLength) return null
  const column = (index: number) => at + HEADER_BYTES + 4 * count * index
  return {
    count,
    acceptedAtMs: view.getFloat64(32, true),
    firstSequence: view.getFloat64(40, true),
    lengths: new Int32Array(buffer, column(0), count),
    sequenceDeltas: new Uint32Array(buffer, column(1), count),
    idEnds: new Uint32Array(buffer, column(2), count),
    payloadEnds: withPayloads ? new Uint32Array(buffer, column(3), count) : null,
    deadlineMs: withDeadlines ? new Int32Array(buffer, column(columns - 1), count) : null,
    tokens: new Int32Array(buffer, at + tokensAt, tokens),
    payloads: withPayloads ? bytes.subarray(payloadsAt, idsAt) : null,
    ids: bytes.subarray(idsAt),
  }
}

/** Row of the sequence in the block, or -1. */
export function rowOf(block: ItemBlock, sequence: number): number {
  const { sequenceDeltas } = block
  const delta = sequence - block.firstSequence
  let low = 0
  let high = block.count - 1
  while (low <= high) {
    const middle = (low + high) >>> 1
    if (sequenceDeltas[middle] === delta) return middle
    if (sequenceDeltas[middle] < delta) low = middle + 1
    else high = middle - 1
  }
  return -1
}

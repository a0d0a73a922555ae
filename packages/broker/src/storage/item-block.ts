// A block: the items of one append, job and disk shape, in columns. It is written once and never
// changed; what of it is settled stands in its marks (block-marks.ts).
//
// Little-endian. u32 magic, u32 crc32 of all that follows it, u32 count, u32 flags (1: payloads, 2: deadlines),
// u32 bytes of ids, u32 tokens, u32 bytes of payloads, u32 crc32 of the head, f64 acceptedAtMs, f64 first sequence;
// then the columns, count entries each: i32 lengths, u32 sequence less the first, u32 id ends,
// u32 payload ends (with flag 1), i32 milliseconds from acceptance to the deadline, 0 = none (with flag
// 2); i32 tokens; payload bytes; id bytes. A column that no item of the block uses is left out.
//
// The head is what a settlement needs: from byte 8 to the end of the sequences, with zero in place of its
// checksum. 0 is none: the block was written by a broker that wrote none.
import type { SubmitBlock } from '@fabric/core'
import { checksum } from './checksum.js'

const MAGIC = 0x42494631 // 1FIB
const HEADER_BYTES = 48
const HEADER_WORDS = HEADER_BYTES / 4
const HEAD_CRC_WORD = 7
const WITH_PAYLOADS = 1
const WITH_DEADLINES = 2

/** What is read, checked and set aside at once: an item of it costs no more than this much reading. */
const BLOCK_BYTES_MAX = 64 * 1024
const BLOCK_ITEMS_MAX = 1024

/** Items to write: columns of a submission, and where each item's tokens begin in them. */
export interface ItemColumns extends SubmitBlock {
  readonly sequences: Float64Array
  readonly tokenStarts: Uint32Array
}

const startOf = (ends: Uint32Array, row: number) => (row === 0 ? 0 : ends[row - 1])

/** Where each item's tokens begin: an item with a payload has none. */
export function tokenStartsOf(
  { count, lengths, payloadEnds }: Pick<SubmitBlock, 'count' | 'lengths' | 'payloadEnds'>,
  starts: Uint32Array = new Uint32Array(count),
): Uint32Array {
  let at = 0
  for (let i = 0; i < count; i++) {
    starts[i] = at
    if (payloadEnds === null || payloadEnds[i] === startOf(payloadEnds, i)) at += lengths[i]
  }
  return starts
}

/** The rows that make a block, and how long its columns are. */
export interface BlockExtent {
  readonly count: number
  readonly tokens: number
  readonly idBytes: number
  readonly payloadBytes: number
  readonly haveDeadline: boolean
  /** Of the encoded block. */
  readonly bytes: number
  /** The rows stand side by side and none has a payload: its columns are pieces of theirs. */
  readonly isContiguous: boolean
}

/** As many of the rows from `from` on as make the next block. */
export function nextBlock(
  items: ItemColumns,
  rows: readonly number[],
  from: number,
  end = rows.length,
): BlockExtent {
  const { idEnds, lengths, payloadEnds, deadlineMs = null } = items
  let tokens = 0
  let idBytes = 0
  let payloadBytes = 0
  let haveDeadline = false
  let count = 0
  for (let i = from; i < end && count < BLOCK_ITEMS_MAX; i++) {
    const row = rows[i]
    const ofId = idEnds[row] - startOf(idEnds, row)
    const ofPayload = payloadEnds === null ? 0 : payloadEnds[row] - startOf(payloadEnds, row)
    const ofTokens = ofPayload === 0 ? lengths[row] : 0
    const data = 4 * (tokens + ofTokens) + idBytes + ofId + payloadBytes + ofPayload
    if (count > 0 && HEADER_BYTES + 20 * (count + 1) + data > BLOCK_BYTES_MAX) break
    tokens += ofTokens
    idBytes += ofId
    payloadBytes += ofPayload
    if (deadlineMs !== null && deadlineMs[row] > 0) haveDeadline = true
    count += 1
  }
  const columns = 3 + Number(payloadBytes > 0) + Number(haveDeadline)
  const bytes = HEADER_BYTES + 4 * columns * count + 4 * tokens + payloadBytes + idBytes
  const isContiguous = rows[from + count - 1] - rows[from] === count - 1 && payloadBytes === 0
  return { count, tokens, idBytes, payloadBytes, haveDeadline, bytes, isContiguous }
}

/**
 * The block's bytes, in `buffer` from `at` on, which is a multiple of 8.
 * @param withTokens false: room is left for the tokens of a contiguous block, which are written from where
 * they are.
 * @returns its checksum.
 */
export function encodeBlock(
  items: ItemColumns,
  rows: readonly number[],
  from: number,
  extent: BlockExtent,
  acceptedAtMs: number,
  buffer: ArrayBuffer,
  at: number,
  withTokens = true,
): number {
  const { count, tokens, idBytes, payloadBytes, haveDeadline, bytes: size } = extent
  const withPayloads = payloadBytes > 0
  const bytes = Buffer.from(buffer, at, size)
  const words = new Int32Array(buffer, at, size >> 2)
  words[0] = MAGIC
  words[2] = count
  words[3] = (withPayloads ? WITH_PAYLOADS : 0) | (haveDeadline ? WITH_DEADLINES : 0)
  words[4] = idBytes
  words[5] = tokens
  words[6] = payloadBytes
  words[HEAD_CRC_WORD] = 0
  bytes.writeDoubleLE(acceptedAtMs, 32)
  bytes.writeDoubleLE(items.sequences[rows[from]], 40)
  const columns = 3 + Number(withPayloads) + Number(haveDeadline)
  const tokensAt = HEADER_WORDS + columns * count
  const place: BlockPlaces = { words, bytes, tokensAt, idsAt: size - idBytes }
  if (extent.isContiguous) copyRun(items, rows[from], count, place, withTokens)
  else copyRows(items, rows, from, extent, place)
  if (haveDeadline) {
    const column = HEADER_WORDS + (columns - 1) * count
    for (let i = 0; i < count; i++) words[column + i] = items.deadlineMs![rows[from + i]]
  }
  words[HEAD_CRC_WORD] = checksum(bytes.subarray(8, headBytes(count)))
  const crc = withTokens
    ? checksum(bytes.subarray(8))
    : checksumAround(items, rows[from], extent, bytes)
  words[1] = crc
  return crc
}

/** With the tokens from where they are. */
function checksumAround(
  items: ItemColumns,
  first: number,
  extent: BlockExtent,
  bytes: Buffer,
): number {
  const tokens = tokensOfRun(items, first, extent)
  const before = checksum(bytes.subarray(8, tokens.at))
  const behind = bytes.subarray(tokens.at + tokens.bytes.byteLength)
  return checksum(behind, checksum(tokens.bytes, before))
}

interface BlockPlaces {
  readonly words: Int32Array
  readonly bytes: Buffer
  /** In words. */
  readonly tokensAt: number
  readonly idsAt: number
}

function copyRun(
  items: ItemColumns,
  first: number,
  count: number,
  { words, bytes, tokensAt, idsAt }: BlockPlaces,
  withTokens: boolean,
): void {
  const { lengths, sequences, idEnds, tokenStarts } = items
  const last = first + count - 1
  const idStart = startOf(idEnds, first)
  for (let i = 0; i < count; i++) {
    const row = first + i
    words[HEADER_WORDS + i] = lengths[row]
    words[HEADER_WORDS + count + i] = sequences[row] - sequences[first]
    words[HEADER_WORDS + 2 * count + i] = idEnds[row] - idStart
  }
  const tokenEnd = tokenStarts[last] + lengths[last]
  if (withTokens) words.set(items.tokens.subarray(tokenStarts[first], tokenEnd), tokensAt)
  bytes.set(items.ids.subarray(idStart, idEnds[last]), idsAt)
}

function copyRows(
  items: ItemColumns,
  rows: readonly number[],
  from: number,
  { count, tokens, payloadBytes }: BlockExtent,
  { words, bytes, tokensAt, idsAt }: BlockPlaces,
): void {
  const { lengths, sequences, idEnds, tokenStarts, payloadEnds } = items
  const payloadsAt = 4 * (tokensAt + tokens)
  let token = tokensAt
  let payload = 0
  let id = 0
  for (let i = 0; i < count; i++) {
    const row = rows[from + i]
    const idStart = startOf(idEnds, row)
    bytes.set(items.ids.subarray(idStart, idEnds[row]), idsAt + id)
    id += idEnds[row] - idStart
    words[HEADER_WORDS + i] = lengths[row]
    words[HEADER_WORDS + count + i] = sequences[row] - sequences[rows[from]]
    words[HEADER_WORDS + 2 * count + i] = id
    const payloadStart = payloadEnds === null ? 0 : startOf(payloadEnds, row)
    const ofPayload = payloadEnds === null ? 0 : payloadEnds[row] - payloadStart
    if (ofPayload === 0) {
      const start = tokenStarts[row]
      words.set(items.tokens.subarray(start, start + lengths[row]), token)
      token += lengths[row]
    } else {
      const end = payloadStart + ofPayload
      bytes.set(items.payloads!.subarray(payloadStart, end), payloadsAt + payload)
      payload += ofPayload
    }
    if (payloadBytes > 0) words[HEADER_WORDS + 3 * count + i] = payload
  }
}

/** Of a contiguous block: where its tokens stand in it, in bytes, and where they are. */
export function tokensOfRun(
  { lengths, tokenStarts, tokens }: ItemColumns,
  first: number,
  { count, haveDeadline }: BlockExtent,
): { readonly at: number; readonly bytes: Buffer } {
  const start = tokenStarts[first]
  const last = first + count - 1
  const length = tokenStarts[last] + lengths[last] - start
  const bytes = Buffer.from(tokens.buffer, tokens.byteOffset + 4 * start, 4 * length)
  return { at: HEADER_BYTES + 4 * (3 + Number(haveDeadline)) * count, bytes }
}

/** A block read back; the columns are views of `bytes`, which the caller owns and aligned to 8. */
export interface ItemBlock {
  /** All of it. */
  readonly bytes: Uint8Array
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

/** What a settlement needs of a block. */
export type BlockHead = Pick<
  ItemBlock,
  'bytes' | 'count' | 'firstSequence' | 'lengths' | 'sequenceDeltas'
>

/** Of a block of so many items. */
export const headBytes = (count: number): number => HEADER_BYTES + 8 * count

/**
 * Of the head alone, of which the checksum is taken out. null: damaged, or its block has none, which only all
 * of the block tells.
 */
export function decodeHead(bytes: Uint8Array): BlockHead | null {
  const { buffer, byteOffset: at, byteLength } = bytes
  if (byteLength < HEADER_BYTES) return null
  const words = new Uint32Array(buffer, at, HEADER_WORDS)
  const [magic, , count] = words
  if (magic !== MAGIC || byteLength !== headBytes(count)) return null
  const crc = words[HEAD_CRC_WORD]
  words[HEAD_CRC_WORD] = 0
  if (crc === 0 || crc !== checksum(bytes.subarray(8))) return null
  return {
    bytes,
    count,
    firstSequence: new Float64Array(buffer, at + 40, 1)[0],
    lengths: new Int32Array(buffer, at + HEADER_BYTES, count),
    sequenceDeltas: new Uint32Array(buffer, at + HEADER_BYTES + 4 * count, count),
  }
}

/** null: damaged. */
export function decodeBlock(bytes: Uint8Array): ItemBlock | null {
  if (bytes.byteLength < HEADER_BYTES) return null
  const { buffer, byteOffset: at } = bytes
  const view = new DataView(buffer, at, bytes.byteLength)
  if (view.getUint32(0, true) !== MAGIC) return null
  if (view.getUint32(4, true) !== checksum(bytes.subarray(8))) return null
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
    bytes,
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

/** Of an encoded block. */
export const checksumOf = (bytes: Uint8Array): number =>
  new DataView(bytes.buffer, bytes.byteOffset).getUint32(4, true)

/** Row of the sequence in the block, or -1. */
export function rowOf(
  block: Pick<ItemBlock, 'count' | 'firstSequence' | 'sequenceDeltas'>,
  sequence: number,
): number {
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

/** null: the item has tokens. */
export function payloadOf({ payloads, payloadEnds }: ItemBlock, row: number): Uint8Array | null {
  if (payloads === null || payloadEnds === null) return null
  const start = startOf(payloadEnds, row)
  return payloadEnds[row] === start ? null : payloads.subarray(start, payloadEnds[row])
}

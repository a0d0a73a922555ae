// Results on disk: records as in memory (results/log.ts), in chunks of one transaction and job.
//
// A chunk, little-endian: u32 crc32 of all that follows it, u32 count, f64 offset of the first record,
// then the records. A record, 8-aligned: u32 its length, u32 id bytes, u32 value bytes, u32 attempts,
// u32 truncated to, u8 status, u8 encoding, u16 zero; the value; the id.
import { type ResultRecord, STATUSES } from '../results/log.js'
import { checksum } from './checksum.js'

export const CHUNK_HEADER_BYTES = 16
const RECORD_HEADER_BYTES = 24
/** A chunk takes no further record beyond it. */
export const CHUNK_BYTES_MAX = 16 * 4096 - 64

const align8 = (bytes: number) => Math.ceil(bytes / 8) * 8

export const recordBytes = ({ id, value }: ResultRecord): number =>
  align8(RECORD_HEADER_BYTES + value.byteLength + id.byteLength)

/** @param at a multiple of 8; `words` and `bytes` are views of the same memory. @returns its length. */
export function writeRecord(
  words: Uint32Array,
  bytes: Uint8Array,
  at: number,
  record: ResultRecord,
): number {
  const { id, value } = record
  const length = recordBytes(record)
  const word = at / 4
  words[word] = length
  words[word + 1] = id.byteLength
  words[word + 2] = value.byteLength
  words[word + 3] = record.attempts
  words[word + 4] = record.truncatedTo
  words[word + 5] = STATUSES.indexOf(record.status) | (record.encoding << 8)
  bytes.set(value, at + RECORD_HEADER_BYTES)
  bytes.set(id, at + RECORD_HEADER_BYTES + value.byteLength)
  return length
}

/** Views of `bytes`; a value begins at a multiple of 8 when `bytes` does. */
export function readRecord(bytes: Uint8Array, at: number): ResultRecord {
  const view = new DataView(bytes.buffer, bytes.byteOffset)
  const valueAt = at + RECORD_HEADER_BYTES
  const idAt = valueAt + view.getUint32(at + 8, true)
  return {
    status: STATUSES[bytes[at + 20]],
    attempts: view.getUint32(at + 12, true),
    truncatedTo: view.getUint32(at + 16, true),
    encoding: bytes[at + 21],
    value: bytes.subarray(valueAt, idAt),
    id: bytes.subarray(idAt, idAt + view.getUint32(at + 4, true)),
  }
}

export const recordLength = (bytes: Uint8Array, at: number): number =>
  new DataView(bytes.buffer, bytes.byteOffset).getUint32(at, true)

export const statusAt = (bytes: Uint8Array, at: number): number => bytes[at + 20]

/** Fills in the head of a chunk whose records stand behind it already. */
export function sealChunk(chunk: Buffer, count: number, firstOffset: number): Buffer {
  chunk.writeUInt32LE(count, 4)
  chunk.writeDoubleLE(firstOffset, 8)
  chunk.writeUInt32LE(checksum(chunk.subarray(4)), 0)
  return chunk
}

export interface ResultChunk {
  readonly firstOffset: number
  readonly count: number
  /** Where each record begins in `bytes`, and the end of the last. */
  readonly starts: Uint32Array
  readonly bytes: Uint8Array
}

/** null: damaged. */
export function decodeChunk(bytes: Buffer): ResultChunk | null {
  if (bytes.byteLength < CHUNK_HEADER_BYTES) return null
  if (bytes.readUInt32LE(0) !== checksum(bytes.subarray(4))) return null
  const count = bytes.readUInt32LE(4)
  const starts = new Uint32Array(count + 1)
  let at = CHUNK_HEADER_BYTES
  for (let i = 0; i < count; i++) {
    starts[i] = at
    if (at + RECORD_HEADER_BYTES > bytes.byteLength) return null
    at += recordLength(bytes, at)
  }
  starts[count] = at
  if (at !== bytes.byteLength) return null
  return { firstOffset: bytes.readDoubleLE(8), count, starts, bytes }
}

// The files of the log: segments, numbered in the order in which they were begun. Each begins with a
// header; appends follow it (append-header.ts).
//
// Header, little-endian: u32 magic, u32 crc32 of all that follows it, u32 number, u32 zero, the 16 bytes
// of the store's hashKey, so that a file of another store is not taken for one of this.
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'

const MAGIC = 0x31474553 // SEG1
export const SEGMENT_HEADER_BYTES = 32
/** A segment takes no further append beyond it. One with little left in it is moved together. */
export const SEGMENT_BYTES_MAX = 64 * 2 ** 20

const NAME = /^segment-(\d{10})\.log$/

export const segmentPath = (dataDir: string, segment: number): string =>
  join(dataDir, `segment-${String(segment).padStart(10, '0')}.log`)

export interface SegmentFile {
  readonly segment: number
  readonly bytes: number
}

/** In the order in which they were begun. */
export function segmentsIn(dataDir: string): SegmentFile[] {
  const found: SegmentFile[] = []
  for (const name of readdirSync(dataDir)) {
    const number = NAME.exec(name)?.[1]
    if (number === undefined) continue
    // One that a broker beside this one has just removed is gone.
    const stats = statSync(join(dataDir, name), { throwIfNoEntry: false })
    if (stats !== undefined) found.push({ segment: Number(number), bytes: stats.size })
  }
  return found.sort((a, b) => a.segment - b.segment)
}

export function encodeSegmentHeader(segment: number, hashKey: Buffer): Buffer {
  const bytes = Buffer.alloc(SEGMENT_HEADER_BYTES)
  bytes.writeUInt32LE(MAGIC, 0)
  bytes.writeUInt32LE(segment, 8)
  hashKey.copy(bytes, 16)
  bytes.writeUInt32LE(crc32(bytes.subarray(8)), 4)
  return bytes
}

/** Whether the segment's file begins as it must. */
export const isSegmentHeader = (bytes: Buffer, segment: number, hashKey: Buffer): boolean =>
  bytes.subarray(0, SEGMENT_HEADER_BYTES).equals(encodeSegmentHeader(segment, hashKey))

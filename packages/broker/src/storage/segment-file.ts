// The files of the log: segments, numbered in the order in which they were begun. Each begins with a
// header; appends follow it (append-header.ts).
//
// Header, little-endian: u32 magic, u32 crc32 of all that follows it, u32 number, u32 zero, the 16 bytes
// of the store's hashKey, so that a file of another store is not taken for one of this.
import { closeSync, openSync, readdirSync, readSync, statSync } from 'node:fs'
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

/** Ours begin with 1; a number beyond it is somebody's joke. */
const NUMBER_MAX = 2 ** 31

/** Files that are named as segments, in the order in which they were begun. */
export function segmentsIn(dataDir: string): SegmentFile[] {
  const found: SegmentFile[] = []
  for (const name of readdirSync(dataDir)) {
    const number = Number(NAME.exec(name)?.[1] ?? 0)
    if (number === 0 || number > NUMBER_MAX) continue
    // One that a broker beside this one has just removed is gone.
    const stats = statSync(join(dataDir, name), { throwIfNoEntry: false })
    if (stats?.isFile()) found.push({ segment: number, bytes: stats.size })
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

/** Told, and left where they are: they may be all that there is of what another store had. */
export const foreignSegment = (path: string): string =>
  `${path} does not begin as a segment of this store: it is left out, and left there`

/** Whether it begins as a segment of this store, or a broker that died at once has left it. */
export function isOurs(dataDir: string, { segment, bytes }: SegmentFile, hashKey: Buffer): boolean {
  if (bytes <= SEGMENT_HEADER_BYTES) return true
  const header = Buffer.alloc(SEGMENT_HEADER_BYTES)
  const file = openSync(segmentPath(dataDir, segment), 'r')
  try {
    readSync(file, header, 0, SEGMENT_HEADER_BYTES, 0)
  } finally {
    closeSync(file)
  }
  return isSegmentHeader(header, segment, hashKey)
}

// Where everything stands in the index: tables, keys and the format version. The bytes of the values are
// in the file named after each, those of the log in segment-file.ts, append-header.ts and item-block.ts;
// docs/disk-format.md shows all of it to people.
import type { DiskShape } from './store.js'

/** Raised when an older broker could misread what a newer one wrote. */
export const FORMAT_VERSION = 2
/** Format 1 kept its blocks in the tables; it was in use before the first release only. */
export const OLDEST_FORMAT_VERSION = 2

export const DATA_FILE = 'fabric.mdb'

/** Names of the tables (LMDB sub-databases). */
export const TABLES = [
  'meta',
  'jobs',
  'counters',
  'blocks',
  'ids',
  'filters',
  'results',
  'segments',
  'quarantine',
] as const
export type TableName = (typeof TABLES)[number]

/** Keys of `meta`. */
export const META_FORMAT = Buffer.from('format')
export const META_HASH_KEY = Buffer.from('hashKey')
export const META_SEQUENCE = Buffer.from('sequence')
export const META_LAST_JOB = Buffer.from('lastJob')
/** Where the log was when the transaction was made: what stands behind it is not in the index yet. */
export const META_LOG_POSITION = Buffer.from('logPosition')
/** Some block has, or had, a deadline. */
export const META_TIMED = Buffer.from('timed')

/** Numbers stand big-endian in keys, so that LMDB's order is theirs. */
export const jobKey = (job: number): Buffer => {
  const key = Buffer.allocUnsafe(4)
  key.writeUInt32BE(job)
  return key
}

/** A shape of a job: its counters; the beginning of its blocks' keys. */
export function shapeKey(job: number, shape: DiskShape): Buffer {
  const key = Buffer.allocUnsafe(12)
  writeShape(key, job, shape)
  return key
}

/** A block of items: by its first sequence. */
export function blockKey(job: number, shape: DiskShape, sequence: number): Buffer {
  const key = Buffer.allocUnsafe(20)
  writeShape(key, job, shape)
  writeBig(key, 12, sequence)
  return key
}

function writeShape(key: Buffer, job: number, { model, paddedLength }: DiskShape): void {
  key.writeUInt32BE(job, 0)
  key.writeUInt32BE(model, 4)
  key.writeUInt32BE(paddedLength, 8)
}

export interface BlockPlace extends DiskShape {
  readonly job: number
  readonly firstSequence: number
}

export const placeOf = (key: Buffer): BlockPlace => ({
  job: key.readUInt32BE(0),
  model: key.readUInt32BE(4),
  paddedLength: key.readUInt32BE(8),
  firstSequence: readBig(key, 12),
})

/** What is left in a segment of the log. */
export const segmentKey = (segment: number): Buffer => jobKey(segment)

/** A chunk of results: by the offset of its first. */
export function resultKey(job: number, offset: number): Buffer {
  const key = Buffer.allocUnsafe(12)
  key.writeUInt32BE(job, 0)
  writeBig(key, 4, offset)
  return key
}

/** A page of an id run. Runs of level 0 are one page each. */
export function idPageKey(job: number, level: number, run: number, page: number): Buffer {
  const key = Buffer.allocUnsafe(17)
  key.writeUInt32BE(job, 0)
  key[4] = level
  writeBig(key, 5, run)
  key.writeUInt32BE(page, 13)
  return key
}

export const idRunKey = (job: number, level: number, run: number): Buffer =>
  idPageKey(job, level, run, 0).subarray(0, 13)

/** The first key behind all that begin with `prefix`. */
export function keyBehind(prefix: Buffer): Buffer {
  const key = Buffer.from(prefix)
  for (let i = key.length - 1; i >= 0; i--) {
    key[i] = (key[i] + 1) & 0xff
    if (key[i] !== 0) return key
  }
  return Buffer.alloc(prefix.length + 1, 0xff)
}

export function writeBig(key: Buffer, at: number, value: number): void {
  key.writeUInt32BE(Math.floor(value / 2 ** 32), at)
  key.writeUInt32BE(value % 2 ** 32, at + 4)
}

export const readBig = (key: Buffer, at: number): number =>
  key.readUInt32BE(at) * 2 ** 32 + key.readUInt32BE(at + 4)

/** S17's padding, but always to 8: shapes on disk must not move when roundTo is changed. */
export const diskLength = (length: number): number => Math.ceil(length / 8) * 8

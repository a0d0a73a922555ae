// The row of a job: u32 crc32 of what follows it, then JSON: the StoredJob, or null for a job that was
// deleted and whose rows are not all gone yet. Jobs are few and people read them with other tools.
import { crc32 } from 'node:zlib'
import type { StoredJob } from './store.js'

export function encodeJob(job: StoredJob | null): Buffer {
  const text = Buffer.from(JSON.stringify(job))
  const row = Buffer.allocUnsafe(4 + text.byteLength)
  row.set(text, 4)
  row.writeUInt32LE(crc32(text), 0)
  return row
}

export function decodeJob(row: Buffer): StoredJob | null | 'damaged' {
  if (row.byteLength <= 4 || row.readUInt32LE(0) !== crc32(row.subarray(4))) return 'damaged'
  return JSON.parse(row.toString('utf8', 4)) as StoredJob | null
}

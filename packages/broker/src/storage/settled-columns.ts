// Settled items as columns in one buffer, behind room for the header of an append: as they come from the
// caller's thread they are written to the log.
//
// Little-endian, count entries each: f64 jobs, f64 sequences, f64 models (-1: the item was not durable), f64
// lengths rounded up to 8, f64 ends of the records; then the records (result-chunk.ts).
import { appendHeaderBytes } from './append-header.js'
import { checksum } from './checksum.js'
import type { WritableAppend } from './log-writer.js'
import { recordBytes, writeRecord } from './result-chunk.js'
import type { SettledItem } from './store.js'

const COLUMNS = 5
/** The columns are one block of the append. */
const COLUMNS_AT = appendHeaderBytes(1)

export interface SettledColumns {
  readonly jobs: Float64Array
  readonly sequences: Float64Array
  readonly models: Float64Array
  readonly paddedLengths: Float64Array
  readonly recordEnds: Float64Array
  /** As in a chunk, one after the other. */
  readonly records: Uint8Array
}

/** What `packSettled` needs. */
export function settledBytes(items: readonly SettledItem[]): number {
  let bytes = COLUMNS_AT + 8 * COLUMNS * items.length
  for (const { record } of items) bytes += recordBytes(record)
  return bytes
}

export function packSettled(
  items: readonly SettledItem[],
  buffer: ArrayBufferLike,
  bytes: number,
): void {
  const { jobs, sequences, models, paddedLengths, recordEnds, records } = columnsIn(
    new Uint8Array(buffer, COLUMNS_AT, bytes - COLUMNS_AT),
    items.length,
  )
  const words = new Uint32Array(buffer, records.byteOffset, records.byteLength / 4)
  let at = 0
  for (let i = 0; i < items.length; i++) {
    const { job, sequence, shape, record } = items[i]
    jobs[i] = job
    sequences[i] = sequence
    models[i] = shape?.model ?? -1
    paddedLengths[i] = shape?.paddedLength ?? 0
    at += writeRecord(words, records, at, record)
    recordEnds[i] = at
  }
}

/** Packed settlements, where they are read. */
export interface PackedSettled {
  readonly count: number
  /** Of what is packed. */
  readonly bytes: number
  readonly memory: ArrayBufferLike
}

export const settledColumns = ({ count, bytes, memory }: PackedSettled): SettledColumns =>
  columnsIn(new Uint8Array(memory, COLUMNS_AT, bytes - COLUMNS_AT), count)

/** @param bytes the columns as they stand in the log, at a multiple of 8. */
export function columnsIn(bytes: Uint8Array, count: number): SettledColumns {
  const { buffer, byteOffset: at, byteLength } = bytes
  const column = (index: number) => new Float64Array(buffer, at + 8 * count * index, count)
  const recordsAt = 8 * COLUMNS * count
  return {
    jobs: column(0),
    sequences: column(1),
    models: column(2),
    paddedLengths: column(3),
    recordEnds: column(4),
    records: new Uint8Array(buffer, at + recordsAt, byteLength - recordsAt),
  }
}

export function settledAppend({ count, bytes: size, memory }: PackedSettled): WritableAppend {
  const bytes = Buffer.from(memory, 0, size)
  const columns = bytes.subarray(COLUMNS_AT)
  const block = {
    shape: { model: 0, paddedLength: 0 },
    count,
    tokens: 0,
    haveDeadline: false,
    firstSequence: 0,
    at: COLUMNS_AT,
    bytes: columns.byteLength,
    crc: checksum(columns),
  }
  return { kind: 'settled', job: 0, blocks: [block], parts: [bytes], bytes: bytes.byteLength }
}

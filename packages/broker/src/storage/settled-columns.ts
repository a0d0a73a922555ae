// Settled items as columns in one buffer, behind room for the header of an append: as they come from the
// caller's thread they are written to the log.
//
// Little-endian, count entries each: f64 jobs, f64 sequences, f64 models (-1: the item was not durable), f64
// lengths rounded up to 8, f64 ends of the records; then the records (result-chunk.ts).
import { crc32 } from 'node:zlib'
import { appendHeaderBytes } from './append-header.js'
import type { WritableAppend } from './log-writer.js'
import type { SettleWrite } from './messages.js'
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

export function packSettled(items: readonly SettledItem[]): SettleWrite {
  const count = items.length
  let bytes = 0
  for (const { record } of items) bytes += recordBytes(record)
  const buffer = new ArrayBuffer(COLUMNS_AT + 8 * COLUMNS * count + bytes)
  const columns = columnsAt(buffer, COLUMNS_AT, count)
  const { jobs, sequences, models, paddedLengths, recordEnds, records } = columns
  const words = new Uint32Array(buffer, records.byteOffset, records.byteLength / 4)
  let at = 0
  for (let i = 0; i < count; i++) {
    const { job, sequence, shape, record } = items[i]
    jobs[i] = job
    sequences[i] = sequence
    models[i] = shape?.model ?? -1
    paddedLengths[i] = shape?.paddedLength ?? 0
    at += writeRecord(words, records, at, record)
    recordEnds[i] = at
  }
  return { kind: 'settle', count, buffer }
}

export const settledColumns = ({ count, buffer }: SettleWrite): SettledColumns =>
  columnsAt(buffer, COLUMNS_AT, count)

/** As they stand in the log, at a multiple of 8. */
export const settledInLog = (bytes: Uint8Array, count: number): SettledColumns =>
  columnsAt(bytes.buffer as ArrayBuffer, bytes.byteOffset, count)

function columnsAt(buffer: ArrayBuffer, at: number, count: number): SettledColumns {
  const column = (index: number) => new Float64Array(buffer, at + 8 * count * index, count)
  return {
    jobs: column(0),
    sequences: column(1),
    models: column(2),
    paddedLengths: column(3),
    recordEnds: column(4),
    records: new Uint8Array(buffer, at + 8 * COLUMNS * count),
  }
}

export function settledAppend({ count, buffer }: SettleWrite): WritableAppend {
  const bytes = Buffer.from(buffer)
  const columns = bytes.subarray(COLUMNS_AT)
  const block = {
    shape: { model: 0, paddedLength: 0 },
    count,
    tokens: 0,
    haveDeadline: false,
    firstSequence: 0,
    at: COLUMNS_AT,
    bytes: columns.byteLength,
    crc: crc32(columns),
  }
  return { kind: 'settled', job: 0, blocks: [block], parts: [bytes], bytes: bytes.byteLength }
}

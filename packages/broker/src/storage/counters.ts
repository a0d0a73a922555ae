// The counts of jobs and of their shapes, in memory as they will stand on disk after the transaction
// under way. They are few: one row a job and one a shape of a job that has unsettled items.
//
// A row, little-endian: u32 crc32 of all that follows it, u32 zero, then f64 numbers: of a job those
// of JOB_FIELDS, of a shape its items and tokens.
import { crc32 } from 'node:zlib'
import type { Table } from './environment.js'
import { jobKey, shapeKey } from './layout.js'
import type { DiskShape } from './store.js'

/** Settled counts stand by the order of STATUSES (results/log.ts). */
export const JOB_FIELDS = [
  'accepted',
  'completed',
  'failed',
  'expired',
  'cancelled',
  'quarantined',
  'lost',
  'firstOffset',
  'endOffset',
  'readOffset',
  'unreadBytes',
  'keptBytes', // of results from firstOffset to readOffset
] as const
export type JobFields = Record<(typeof JOB_FIELDS)[number], number>

export interface ShapeCounter {
  readonly shape: DiskShape
  items: number
  tokens: number
}

export interface JobCounter extends JobFields {
  readonly job: number
  readonly shapes: Map<string, ShapeCounter>
}

export const shapeName = ({ model, paddedLength }: DiskShape): string => `${model}:${paddedLength}`

export const newJobCounter = (job: number): JobCounter => ({
  ...(Object.fromEntries(JOB_FIELDS.map((field) => [field, 0])) as JobFields),
  job,
  shapes: new Map(),
})

export const encodeJobCounter = (counter: JobCounter): Buffer =>
  encodeRow(JOB_FIELDS.map((field) => counter[field]))

export const encodeShapeCounter = ({ items, tokens }: ShapeCounter): Buffer =>
  encodeRow([items, tokens])

export function encodeRow(numbers: readonly number[]): Buffer {
  const row = Buffer.alloc(8 + 8 * numbers.length)
  numbers.forEach((value, index) => {
    row.writeDoubleLE(value, 8 + 8 * index)
  })
  row.writeUInt32LE(crc32(row.subarray(4)), 0)
  return row
}

/** null: damaged. */
export function decodeRow(row: Buffer, length: number): number[] | null {
  if (row.byteLength !== 8 + 8 * length) return null
  if (row.readUInt32LE(0) !== crc32(row.subarray(4))) return null
  return Array.from({ length }, (_, index) => row.readDoubleLE(8 + 8 * index))
}

export class Counters {
  readonly #jobs = new Map<number, JobCounter>()
  readonly #dirtyJobs = new Set<JobCounter>()
  readonly #dirtyShapes = new Map<ShapeCounter, number>()

  /** @param onDamaged told the keys of rows that cannot be read; what they count is then 0. */
  load(table: Table, onDamaged: (key: Buffer) => void): void {
    this.#jobs.clear()
    this.#dirtyJobs.clear()
    this.#dirtyShapes.clear()
    for (const { key, value } of table.getRange({})) {
      const counter = this.job(key.readUInt32BE(0))
      const numbers = decodeRow(value, key.byteLength === 4 ? JOB_FIELDS.length : 2)
      if (numbers === null) onDamaged(Buffer.from(key))
      else if (key.byteLength === 4)
        JOB_FIELDS.forEach((field, index) => {
          counter[field] = numbers[index]
        })
      else {
        const shape = { model: key.readUInt32BE(4), paddedLength: key.readUInt32BE(8) }
        counter.shapes.set(shapeName(shape), { shape, items: numbers[0], tokens: numbers[1] })
      }
    }
  }

  jobs(): Iterable<JobCounter> {
    return this.#jobs.values()
  }

  job(number: number): JobCounter {
    let counter = this.#jobs.get(number)
    if (counter === undefined) {
      counter = newJobCounter(number)
      this.#jobs.set(number, counter)
    }
    return counter
  }

  /** The job's row will be written. */
  change(number: number): JobCounter {
    const counter = this.job(number)
    this.#dirtyJobs.add(counter)
    return counter
  }

  add(job: number, shape: DiskShape, items: number, tokens: number): void {
    const { shapes } = this.job(job)
    const name = shapeName(shape)
    let counter = shapes.get(name)
    if (counter === undefined) {
      counter = { shape: { ...shape }, items: 0, tokens: 0 }
      shapes.set(name, counter)
    }
    counter.items += items
    counter.tokens += tokens
    this.#dirtyShapes.set(counter, job)
  }

  /** Takes counts made elsewhere; all rows of the job will be written. */
  replace(counter: JobCounter): void {
    this.forget(counter.job)
    this.#jobs.set(counter.job, counter)
    this.#dirtyJobs.add(counter)
    for (const shape of counter.shapes.values()) this.#dirtyShapes.set(shape, counter.job)
  }

  forget(job: number): void {
    const counter = this.#jobs.get(job)
    if (counter === undefined) return
    this.#jobs.delete(job)
    this.#dirtyJobs.delete(counter)
    for (const shape of counter.shapes.values()) this.#dirtyShapes.delete(shape)
  }

  /** Within the transaction. */
  write(table: Table): void {
    for (const counter of this.#dirtyJobs) table.put(jobKey(counter.job), encodeJobCounter(counter))
    for (const [counter, job] of this.#dirtyShapes) {
      const key = shapeKey(job, counter.shape)
      if (counter.items > 0) table.put(key, encodeShapeCounter(counter))
      else {
        table.remove(key)
        this.#jobs.get(job)?.shapes.delete(shapeName(counter.shape))
      }
    }
    this.#dirtyJobs.clear()
    this.#dirtyShapes.clear()
  }
}

// The jobs, in memory as they stand in the index after the transaction under way.
import type { Environment } from './environment.js'
import { decodeJob, encodeJob } from './job-row.js'
import { jobKey, META_LAST_JOB } from './layout.js'
import { readNumber, writeNumber } from './meta-number.js'
import type { StoredJob } from './store.js'

export class JobTable {
  readonly #jobs = new Map<number, StoredJob>()
  /** No job ever had a greater number; -1 in a new store. */
  last = -1

  constructor(readonly tables: Pick<Environment['tables'], 'jobs' | 'meta'>) {}

  has(number: number): boolean {
    return this.#jobs.has(number)
  }

  values(): Iterable<StoredJob> {
    return this.#jobs.values()
  }

  put(job: StoredJob): void {
    this.tables.jobs.put(jobKey(job.number), encodeJob(job))
    this.#jobs.set(job.number, job)
    if (job.number <= this.last) return
    this.last = job.number
    writeNumber(this.tables.meta, META_LAST_JOB, job.number)
  }

  /** The row becomes a tombstone at once; what belongs to the job goes piece by piece. */
  delete(number: number): boolean {
    if (!this.#jobs.delete(number)) return false
    this.tables.jobs.put(jobKey(number), encodeJob(null))
    return true
  }

  /** @returns numbers of jobs that are being removed, and of those whose row cannot be read. */
  load(): { readonly deleted: readonly number[]; readonly damaged: readonly number[] } {
    this.#jobs.clear()
    this.last = readNumber(this.tables.meta, META_LAST_JOB) ?? -1
    const deleted: number[] = []
    const damaged: number[] = []
    for (const { key, value } of this.tables.jobs.getRange({})) {
      const number = key.readUInt32BE(0)
      const job = decodeJob(value)
      if (job === 'damaged') damaged.push(number)
      else if (job === null) deleted.push(number)
      else this.#jobs.set(number, job)
    }
    return { deleted, damaged }
  }
}

// Results in memory: shown at once, gone with the process.
import type { Job } from '../jobs.js'
import type { ResultKeeper } from '../settlement.js'
import type { ResultLog, ResultRecord } from './log.js'

export class MemoryKeeper implements ResultKeeper {
  #job: Job | null = null
  #bytes = 0

  constructor(
    /** S34: told once per job and effect. */
    readonly onStored: (job: Job, bytes: number) => void,
  ) {}

  add(job: Job, _slot: number, record: ResultRecord): void {
    if (job !== this.#job) this.flush()
    this.#job = job
    job.settled[record.status] += 1
    this.#bytes += (job.results as ResultLog).append(record)
  }

  flush(): void {
    const job = this.#job
    if (job === null) return
    this.onStored(job, this.#bytes)
    job.wake()
    this.#job = null
    this.#bytes = 0
  }
}

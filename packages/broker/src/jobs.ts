// The jobs that producers know by name and the core by number: what was accepted, how it ended,
// and the log of results. The engine changes them; the HTTP routes read them.
import { randomUUID } from 'node:crypto'
import type { SettledStatus } from '@fabric/core'
import { FabricError, type JobInfo } from '@fabric/protocol'
import type { JobResults } from './results/reader.js'
import type { RecoveredJob, StoredJob } from './storage/store.js'

export const DEFAULT_JOB = 'default'
const JOB_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/

export class Job {
  createdAt = new Date()
  state: Exclude<JobInfo['state'], 'cancelled'> = 'open'
  accepted = 0
  /** Batches that held an item of it. */
  batches = 0
  #lastBatch = 0
  firstDispatchNs: number | null = null
  /** On the engine's clock; resultsTtlMs counts from here. */
  endedNs: number | null = null
  readonly settled: Record<SettledStatus, number> = {
    completed: 0,
    failed: 0,
    expired: 0,
    cancelled: 0,
    quarantined: 0,
  }
  deleted = false
  paused = false
  /** Its items were cancelled: it takes no new ones. */
  cancelled = false
  /** Grows with each result, end and deletion. */
  changes = 0
  #waiters: (() => void)[] = []

  constructor(
    readonly number: number,
    readonly id: string,
    readonly model: number | null,
    readonly weight: number,
    /** How long its items may be held back, 0 = any time; null: the operator's (S16). */
    readonly maxWaitMs: number | null,
    readonly results: JobResults,
  ) {}

  get settledItems(): number {
    const { completed, failed, expired, cancelled, quarantined } = this.settled
    return completed + failed + expired + cancelled + quarantined
  }

  /** Resolves at the first result, end or deletion of the job after `changes` was read. */
  changed(since: number): Promise<void> {
    if (this.changes !== since) return Promise.resolve()
    return new Promise((resolve) => {
      this.#waiters.push(resolve)
    })
  }

  wake(): void {
    this.changes += 1
    const waiters = this.#waiters
    this.#waiters = []
    for (const resolve of waiters) resolve()
  }

  /** New items: its input goes on. */
  reopen(accepted: number): void {
    this.accepted += accepted
    this.state = 'open'
    this.endedNs = null
  }

  countBatch(batch: number, now: number): void {
    if (batch === this.#lastBatch) return
    this.#lastBatch = batch
    this.batches += 1
    this.firstDispatchNs ??= now
  }

  /** As it is kept on disk. */
  toStored(): StoredJob {
    const { number, id, model, weight, maxWaitMs, state } = this
    const endedAtMs = state === 'ended' ? Date.now() : null
    const createdAtMs = this.createdAt.getTime()
    const { paused, cancelled } = this
    const said = { number, id, model, weight, maxWaitMs, createdAtMs }
    return { ...said, state, paused, cancelled, endedAtMs }
  }

  /** @param leased items that consumers hold, which the core knows. */
  info(leased: number): JobInfo {
    return {
      id: this.id,
      model: this.model,
      weight: this.weight,
      ...(this.maxWaitMs === null ? {} : { maxWaitMs: this.maxWaitMs }),
      createdAt: this.createdAt.toISOString(),
      state: this.cancelled && this.state === 'ended' ? 'cancelled' : this.state,
      paused: this.paused,
      accepted: this.accepted,
      settled: { ...this.settled },
      waiting: this.accepted - this.settledItems - leased,
      leased,
      unreadResultBytes: this.results.unreadBytes,
    }
  }
}

/** Where the results of jobs are kept. */
export interface ResultHome {
  /** @param earlier what an earlier life left of them. */
  create(job: number, earlier?: RecoveredJob['results']): JobResults
  delete(results: JobResults): void
}

export class JobTable {
  readonly #byId = new Map<string, Job>()
  readonly #byNumber = new Map<number, Job>()
  #nextNumber: number

  constructor(
    readonly results: ResultHome,
    readonly maxJobs: number,
    lastNumber = -1,
  ) {
    this.#nextNumber = lastNumber + 1
  }

  /** @throws FabricError when the id is malformed, used, or the table is full. */
  create(
    id: string = randomUUID(),
    model: number | null = null,
    weight = 1,
    maxWaitMs: number | null = null,
  ): Job {
    if (!JOB_ID.test(id))
      throw new FabricError(
        'FABRIC_BAD_REQUEST',
        'a job id is 1 to 128 of letters, digits, ".", "_" and "-", a letter or digit first',
        { field: 'id' },
      )
    if (this.#byId.has(id))
      throw new FabricError('FABRIC_ID_CONFLICT', `job ${id} exists`, { field: 'id' })
    if (this.#byId.size >= this.maxJobs)
      throw new FabricError('FABRIC_JOB_LIMIT', `${this.maxJobs} jobs are known (maxJobs)`)
    const number = this.#nextNumber++
    return this.#add(new Job(number, id, model, weight, maxWaitMs, this.results.create(number)))
  }

  /** A job of an earlier life. @param now on the engine's clock: results are kept from here on. */
  restore(found: RecoveredJob, now: number): Job {
    const { number, id, model, weight, maxWaitMs = null } = found
    const results = this.results.create(number, found.results)
    const job = new Job(number, id, model, weight, maxWaitMs, results)
    job.createdAt = new Date(found.createdAtMs)
    job.state = found.state
    job.accepted = found.accepted
    job.cancelled = found.cancelled
    job.endedNs = found.state === 'ended' ? now : null
    job.paused = found.paused
    Object.assign(job.settled, found.settled)
    return this.#add(job)
  }

  #add(job: Job): Job {
    this.#byId.set(job.id, job)
    this.#byNumber.set(job.number, job)
    return job
  }

  find(id: string): Job | undefined {
    return this.#byId.get(id)
  }

  /** @throws FabricError FABRIC_NOT_FOUND */
  get(id: string): Job {
    const job = this.#byId.get(id)
    if (job === undefined)
      throw new FabricError('FABRIC_NOT_FOUND', `no job ${JSON.stringify(id)}`, { field: 'job' })
    return job
  }

  byNumber(number: number): Job {
    const job = this.#byNumber.get(number)
    if (job === undefined) throw new Error(`bug: the core knows job ${number}, the table does not`)
    return job
  }

  delete(job: Job): void {
    job.deleted = true
    this.#byId.delete(job.id)
    this.#byNumber.delete(job.number)
    this.results.delete(job.results)
    job.wake()
  }

  [Symbol.iterator](): IterableIterator<Job> {
    return this.#byId.values()
  }

  get size(): number {
    return this.#byId.size
  }
}

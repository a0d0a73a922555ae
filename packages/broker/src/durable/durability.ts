// Disk mode as the engine sees it: what is accepted, settled and told goes through here to the store.
import type { Effect, ItemView, RestoredJob, SubmitBlock } from '@fabric/core'
import { DISK_ROUND_TO } from '@fabric/core'
import { DEFAULT_JOB, type Job } from '../jobs.js'
import { DiskResults } from '../results/disk-results.js'
import type { ResultRecord } from '../results/log.js'
import type { ResultKeeper } from '../settlement.js'
import type { RecoveredJob } from '../storage/store.js'
import { EarlierResults } from './earlier-results.js'
import { EarlyEnds } from './early-ends.js'
import type { DurableHost } from './host.js'
import { clockOf, Loads } from './loads.js'
import { Quarantine } from './quarantine.js'
import { Settlements } from './settlements.js'
import { Submissions } from './submissions.js'

export class Durability implements ResultKeeper {
  readonly submissions: Submissions
  readonly settlements: Settlements
  readonly loads: Loads
  readonly earlyEnds: EarlyEnds
  readonly earlierResults: EarlierResults
  /** Null in a spill, where it ends with the broker. */
  readonly quarantine: Quarantine | null
  /** Job rows under way. */
  readonly #jobWrites = new Set<Promise<void>>()

  constructor(
    readonly host: DurableHost,
    readonly items: ItemView,
    onEnd: (job: Job) => void,
    settleEarlier: EarlierResults['settle'],
    dataDir: string | null,
  ) {
    this.submissions = new Submissions(host)
    this.loads = new Loads(host)
    this.settlements = new Settlements(host, (job) => {
      onEnd(job)
      this.updateJob(job)
    })
    this.earlyEnds = new EarlyEnds(host, this.settlements)
    this.quarantine = dataDir === null ? null : new Quarantine(host, this.settlements, dataDir)
    this.earlierResults = new EarlierResults(host, this.earlyEnds, settleEarlier)
  }

  /** Before anything else: jobs and what is left of them, as an earlier life kept it. */
  async recover(): Promise<void> {
    const { store, jobs, clock } = this.host
    const { recovery } = store
    for (const found of recovery.jobs) jobs.restore(found, clock.now())
    this.host.run({
      type: 'restore',
      lastSequence: recovery.lastSequence,
      jobs: recovery.jobs.map((job) => restoredJob(job, clockOf(clock.now()))),
      quarantined: (await this.quarantine?.load()) ?? [],
    })
    for (const { number, paused } of recovery.jobs)
      if (paused) this.host.run({ type: 'pauseJob', job: number })
    if (jobs.find(DEFAULT_JOB) === undefined) await this.createJob(jobs.create(DEFAULT_JOB))
  }

  /** Resolves with the last word on each item, once what was accepted is durable. */
  keep(
    job: Job,
    block: SubmitBlock,
    admitted: Extract<Effect, { type: 'admitted' }>,
  ): Promise<Uint8Array> {
    return this.submissions.keep(job, block, admitted)
  }

  add(job: Job, slot: number, record: ResultRecord): void {
    const { items } = this
    const paddedLength = Math.ceil(items.length(slot) / DISK_ROUND_TO) * DISK_ROUND_TO
    const shape = items.durable(slot) ? { model: items.model(slot), paddedLength } : null
    const sequence = items.sequence(slot)
    const { quarantine } = this
    if (record.status === 'quarantined' && quarantine?.takes(sequence, shape) === true)
      quarantine.end(job, sequence, shape, record)
    else this.settlements.add(job, sequence, shape, record, quarantine?.ended(sequence))
  }

  flush(): void {
    this.settlements.flush()
  }

  reopen(job: Job): void {
    this.settlements.reopen(job)
    this.updateJob(job)
  }

  createJob(job: Job): Promise<void> {
    return this.#track(this.host.store.createJob(job.toStored()))
  }

  /** Who awaits it knows that the state is kept; else a failure is logged. */
  updateJob(job: Job): Promise<void> {
    return this.#track(this.host.store.updateJob(job.toStored()))
  }

  deleteJob(job: Job): Promise<void> {
    this.quarantine?.review()
    return this.#track(this.host.store.deleteJob(job.number))
  }

  /** Resolves when nothing is on its way to the disk, or it is too late; new submissions must have ended. */
  async settled(late: Promise<void>): Promise<void> {
    let isLate = false
    void late.then(() => {
      isLate = true
    })
    while (!this.isIdle && !isLate) {
      await Promise.race([Promise.allSettled(this.#jobWrites), late])
      await new Promise<void>((resolve) => setTimeout(resolve, 1))
    }
  }

  get isIdle(): boolean {
    return (
      this.earlyEnds.isIdle &&
      this.quarantine?.isIdle !== false &&
      this.earlierResults.isIdle &&
      this.settlements.isIdle &&
      this.submissions.underWay === 0 &&
      this.#jobWrites.size === 0
    )
  }

  #track(write: Promise<void>): Promise<void> {
    this.#jobWrites.add(write)
    write.then(
      () => this.#jobWrites.delete(write),
      (error) => {
        this.#jobWrites.delete(write)
        this.host.story.jobWriteFailed(error)
      },
    )
    return write
  }
}

function restoredJob(found: RecoveredJob, toClock: (unixMs: number) => number): RestoredJob {
  const { number, weight, maxWaitMs, state, settled, lost, shapes, results, deadlines } = found
  return {
    job: number,
    weight,
    maxWaitMs: maxWaitMs ?? undefined,
    flushed: state !== 'open',
    ended: state === 'ended',
    settled: { ...settled, failed: settled.failed + lost },
    unreadResultBytes: results.unreadBytes,
    shapes,
    deadlines: deadlines.map(({ deadlineAtMs, ...item }) => ({
      ...item,
      deadlineAt: Math.max(1, toClock(deadlineAtMs)),
    })),
  }
}

/** The results of jobs in the store. */
export const diskResultHome = (store: DurableHost['store']) => ({
  create: (job: number, earlier?: RecoveredJob['results']) => {
    const results = new DiskResults(store, job, earlier?.readOffset, earlier?.endOffset)
    results.unreadBytes = earlier?.unreadBytes ?? 0
    return results
  },
  /** They go with their job. */
  delete: () => {},
})

// The life of jobs as producers drive it: made, ended, paused, cancelled, deleted, and forgotten in the
// end. In disk mode each step resolves when it is kept.
import { FabricError, type JobInfo } from '@fabric/protocol'
import { NS_PER_MS } from './clock.js'
import type { Commands } from './commands.js'
import type { Engine } from './engine.js'
import type { JobActions } from './http/jobs-routes.js'
import { DEFAULT_JOB, type Job, type JobTable } from './jobs.js'
import type { BrokerState } from './state.js'

export interface JobLifeOptions {
  readonly resultsTtlMs: number
  readonly maxUnreadResultBytes: number
}

export class JobLife implements JobActions {
  constructor(
    readonly jobs: JobTable,
    readonly engine: Engine,
    readonly commands: Commands,
    readonly options: JobLifeOptions,
    /** @throws FabricError FABRIC_DRAINING */
    readonly refuseWhileDraining: () => void,
  ) {}

  /** Resolves when the job is kept: durably, in disk mode. */
  async createJob(
    id: string | undefined,
    model: number | null,
    weight: number,
    maxWaitMs: number | null,
  ): Promise<Job> {
    this.refuseWhileDraining()
    const job = this.jobs.create(id, model, weight, maxWaitMs)
    this.engine.createJob(job)
    try {
      await this.engine.disk?.createJob(job)
    } catch (error) {
      if (!job.deleted) this.engine.deleteJob(job)
      throw error
    }
    return job
  }

  /** @throws FabricError when the job takes no items. */
  checkOpen(job: Job): void {
    // A long body is taken in turns; its job may be deleted in between.
    if (job.deleted) throw new FabricError('FABRIC_NOT_FOUND', `job ${job.id} was deleted`)
    if (job.cancelled)
      throw new FabricError('FABRIC_JOB_CANCELLED', `job ${job.id} was cancelled`, { field: 'job' })
  }

  async flushJob(job: Job): Promise<void> {
    this.engine.flush(job)
    await this.engine.disk?.updateJob(job)
  }

  /** Its results say what was cancelled. In disk mode a restart in between goes on with it. */
  async cancelJob(job: Job): Promise<void> {
    // The default job stays open: it is nobody's alone.
    if (job.id !== DEFAULT_JOB) job.cancelled = true
    await this.engine.disk?.updateJob(job)
    await this.commands.cancelAll(job)
    if (job.cancelled && !job.deleted) await this.flushJob(job)
  }

  /** Goes on with what an earlier life had begun. */
  goOn(): void {
    for (const job of Array.from(this.jobs))
      if (job.cancelled && job.state !== 'ended')
        // What fails is logged there, and is tried again by the next life.
        this.cancelJob(job).catch(() => {})
  }

  async setPaused(job: Job, paused: boolean): Promise<void> {
    this.commands.setPaused(job, paused)
    await this.engine.disk?.updateJob(job)
  }

  /** The default job is never missing: deleted, it begins anew. */
  async deleteJob(job: Job): Promise<void> {
    const { disk } = this.engine
    this.engine.deleteJob(job)
    const writes = [disk?.deleteJob(job)]
    if (job.id === DEFAULT_JOB) {
      const anew = this.jobs.create(DEFAULT_JOB)
      this.engine.createJob(anew)
      writes.push(disk?.createJob(anew))
    }
    await Promise.all(writes)
  }

  forgetEnded(): void {
    const before = this.engine.now() - this.options.resultsTtlMs * NS_PER_MS
    for (const job of Array.from(this.jobs))
      if (job.endedNs !== null && job.endedNs <= before)
        // What fails is logged there, and is tried again by the next life's sweep.
        this.deleteJob(job).catch(() => {})
  }

  jobInfo(job: Job): JobInfo {
    return job.info(this.#leasedByJob().get(job.number) ?? 0)
  }

  jobInfos(): JobInfo[] {
    const leased = this.#leasedByJob()
    return Array.from(this.jobs, (job) => job.info(leased.get(job.number) ?? 0))
  }

  /** Jobs that go on only when someone acts (S34): what `fabric-broker status` shows. */
  stalled(): BrokerState['stalledJobs'] {
    const held = this.engine.counts().jobs.filter(({ onHold }) => onHold)
    return held.flatMap(({ job: number, waiting, unreadResultBytes, paused }) => {
      const job = Array.from(this.jobs).find((each) => each.number === number)
      const unread = `${unreadResultBytes} bytes of its results are unread (maxUnreadResultBytes ${this.options.maxUnreadResultBytes}): it goes on when they are read`
      const reason = paused ? 'it is paused, and goes on when it is resumed' : unread
      return job === undefined || job.endedNs !== null
        ? []
        : [{ id: job.id, waiting, unreadResultBytes, reason }]
    })
  }

  #leasedByJob(): Map<number, number> {
    return new Map(this.engine.counts().jobs.map(({ job, leased }) => [job, leased]))
  }
}

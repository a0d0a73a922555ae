// Jobs: whose input has ended, what they have waiting, and when they are done (S10, S29, S36).

import { endInput } from './consumers.js'
import { CoreBug } from './core-bug.js'
import type { DiskPart } from './disk.js'
import type { SettledStatus } from './effects.js'
import type { Group } from './group-table.js'
import type { IdBlocks } from './id-blocks.js'
import { IdMemory } from './id-memory.js'
import { Queue } from './queue.js'
import { NS_PER_MS, type State, touch } from './state.js'
import { TIMER_JOB_IDS } from './timers.js'

/** Waiting items of one model. */
interface Backlog {
  readonly model: number
  items: number
}

export class Job {
  /** Its input has ended, until new items come (S10). */
  flushed = false
  /** `jobEnded` was told for this end of input. */
  endTold = false
  touched = false
  accepted = 0
  waiting = 0
  leased = 0
  readonly settled: Record<SettledStatus, number> = {
    completed: 0,
    failed: 0,
    expired: 0,
    cancelled: 0,
    quarantined: 0,
  }
  /** Every model of which it ever had items. */
  readonly backlogs = new Map<number, Backlog>()
  lastBacklog: Backlog | null = null
  readonly ids: IdMemory
  /** Its items on disk, by shape. */
  readonly parts = new Set<DiskPart>()
  /** Admitted and not yet durable. */
  reserved = 0
  /** Numbers of its items are not below, and its last end of input covers those up to the second. */
  firstSequence = 0
  flushedAt = 0
  unreadResultBytes = 0
  /** Too many of its results are unread (S34). */
  resultsUnread = false
  paused = false
  /** On hold for either of these: its waiting items stand in the next three. */
  onHold = false
  readonly held = new Queue()
  readonly heldReclaimed = new Queue()
  readonly heldGroups: Group[] = []

  constructor(
    readonly id: number,
    readonly row: number,
    /** Share of its turns where jobs meet in a shape (S20a). */
    readonly weight: number,
    /** When its ids may be forgotten (S36). */
    readonly idTimer: number,
    /** How long its items may be held back for a fuller batch, 0 = any; and whether it says so itself. */
    readonly maxWaitNs: number,
    readonly hasOwnWait: boolean,
    idBlocks: IdBlocks,
  ) {
    this.ids = new IdMemory(idBlocks)
  }
}

/** @param maxWaitMs of its items, 0 = any; by default the operator's (S16). */
export function createJob(state: State, id: number, weight = 1, maxWaitMs?: number): void {
  if (state.jobs.has(id)) throw new CoreBug(`job ${id} exists`)
  if (!(weight >= 1)) throw new CoreBug(`job ${id} has weight ${weight}`)
  const row = state.freeJobRows.pop() ?? state.jobRows.length
  const idTimer = state.timers.open(TIMER_JOB_IDS, row)
  const maxWaitNs = (maxWaitMs ?? state.config.maxWaitMs) * NS_PER_MS
  const job = new Job(id, row, weight, idTimer, maxWaitNs, (maxWaitMs ?? 0) > 0, state.idBlocks)
  job.firstSequence = state.items.lastSequence + 1
  state.jobs.set(id, job)
  state.jobRows[row] = job
}

export function jobById(state: State, id: number): Job {
  const job = state.jobs.get(id)
  if (job === undefined) throw new CoreBug(`job ${id} does not exist`)
  return job
}

export function jobOfItem(state: State, slot: number): Job {
  return state.jobRows[state.items.job.get(slot)]!
}

export function backlogOf(job: Job, model: number): Backlog {
  // Items of a job come in runs of one model: the last answer is nearly always right.
  if (job.lastBacklog?.model === model) return job.lastBacklog
  let backlog = job.backlogs.get(model)
  if (backlog === undefined) {
    backlog = { model, items: 0 }
    job.backlogs.set(model, backlog)
  }
  job.lastBacklog = backlog
  return backlog
}

/** Ends the input of one job, or of all (S10). */
export function flush(state: State, id: number | null): void {
  const jobs = id === null ? [...state.jobs.values()] : [jobById(state, id)]
  for (const job of jobs) {
    setFlushed(state, job, true)
    job.flushedAt = state.items.lastSequence
    touchJob(state, job)
  }
}

/** A flushed job that gets new items has input again. */
export function reopenInput(state: State, job: Job): void {
  setFlushed(state, job, false)
  job.endTold = false
}

function setFlushed(state: State, job: Job, flushed: boolean): void {
  if (job.flushed === flushed) return
  job.flushed = flushed
  const sign = flushed ? -1 : 1
  for (const backlog of job.backlogs.values()) {
    const model = state.models.get(backlog.model)
    if (model === undefined) continue
    model.openItems += sign * backlog.items
    if (model.served) state.served.openItems += sign * backlog.items
    if (flushed && model.inputEnded) endInput(state, model)
    touch(state, model)
  }
}

/** Has the end of the step see whether the job is done. */
export function touchJob(state: State, job: Job): void {
  if (job.touched) return
  job.touched = true
  state.touchedJobs.push(job)
}

/** Tells the jobs that are flushed and whose items have all ended. */
export function tellEndedJobs(state: State): void {
  for (const job of state.touchedJobs) {
    job.touched = false
    const done = job.flushed && job.waiting + job.leased + job.reserved === 0
    if (!done || job.endTold || state.jobs.get(job.id) !== job) continue
    job.endTold = true
    state.effects.push({ type: 'jobEnded', job: job.id })
  }
  state.touchedJobs.length = 0
}

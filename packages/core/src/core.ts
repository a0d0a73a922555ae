// The scheduling core: (state, event, now) to effects, and no other way in.
//
// A shell owns the clock, the sockets and the bytes; it calls `step` with what happened, then with
// `dispatch` until no dispatch effect comes back, and does what the effects say. The same events at
// the same times give the same effects, byte for byte.

import { admit, onStored, restore } from './admission.js'
import { cancel, deleteJob } from './cancel.js'
import { endFinishedCleanups, onCleanupIdle } from './cleanup.js'
import { type Consumer, onRenewalLate, refresh, register, renew } from './consumers.js'
import { CoreBug } from './core-bug.js'
import type { CoreConfig } from './core-config.js'
import type { CoreCounts, TierCounts } from './core-counts.js'
import { countsOf } from './counts.js'
import { expirePast, onDeadline } from './deadlines.js'
import { onDiskDeadline } from './disk-deadlines.js'
import { endOnDisk } from './disk-ends.js'
import { dispatch } from './dispatch.js'
import { onDueTimer, updateDue } from './due.js'
import { onEarlierResults } from './earlier-results.js'
import type { Effect, QuarantinedItem } from './effects.js'
import type { CoreEvent } from './events.js'
import { explain } from './explain.js'
import type { FoundItems, ItemFacts } from './explanation.js'
import { find } from './find.js'
import { openGateIfDue } from './gate.js'
import { pauseJob, resultsRead, resultsStored, resumeJob } from './holds.js'
import type { ItemView } from './item-view.js'
import { itemView } from './item-view.js'
import { createJob, flush, tellEndedJobs } from './jobs.js'
import { onLaneIdle } from './lanes.js'
import { onResults, onTaken } from './leases.js'
import { onOwnWaitOver } from './own-waits.js'
import { discard, replay, restoreQuarantine } from './quarantine.js'
import { onLoaded, onLost, readOut } from './read-ahead.js'
import { die, drain, onLateTimer, onLeaseMax } from './reclaim.js'
import { onRetryDue } from './retry.js'
import { freeEnded } from './settle.js'
import { State } from './state.js'
import { onIdTimer, submit } from './submit.js'
import {
  TIMER_CLEANUP_IDLE,
  TIMER_DEADLINE,
  TIMER_DISK_DEADLINE,
  TIMER_DUE,
  TIMER_GATE,
  TIMER_GROUP,
  TIMER_JOB_IDS,
  TIMER_LANE_IDLE,
  TIMER_LATE,
  TIMER_LEASE_MAX,
  TIMER_OWN_WAIT,
  TIMER_RENEWAL,
  TIMER_RETRY,
  TIMER_TAKING,
} from './timers.js'

export class Core {
  readonly items: ItemView
  private readonly state: State

  constructor(config: CoreConfig) {
    this.state = new State(config)
    this.items = itemView(this.state)
    createJob(this.state, 0)
  }

  /** The answer belongs to the caller; slots in it are valid as the effects say. */
  step(event: CoreEvent, now: number): readonly Effect[] {
    const { state } = this
    if (!Number.isSafeInteger(now) || now < state.now) {
      throw new CoreBug(`time ${now} after ${state.now}`)
    }
    state.now = now
    state.effects = []
    freeEnded(state)
    handle(state, event)
    updateDue(state)
    if (event.type !== 'dispatch') openGateIfDue(state)
    endFinishedCleanups(state)
    tellEndedJobs(state)
    return state.effects
  }

  /** When the next `tick` has something to do; Infinity when nothing waits for a time. */
  nextTimerAt(): number {
    return this.state.timers.nextAt()
  }

  /**
   * The same for what may move work on; Infinity when only housekeeping is left (renewals of live
   * consumers, lanes and ids to forget). With no event to come, nothing more can happen then.
   */
  nextWorkAt(): number {
    return this.state.timers.nextWorkAt()
  }

  /** Items of a job that have not ended, by id or all: one part of a pass over the item table. */
  find(
    job: number,
    ids: readonly Uint8Array[] | null,
    from = 0,
    rows = Number.POSITIVE_INFINITY,
  ): FoundItems {
    return find(this.state, job, ids, from, rows)
  }

  /** What an item that has not ended waits for. */
  explain(slot: number): ItemFacts {
    return explain(this.state, slot)
  }

  /**
   * Memory mode with a spill: whether new items go to disk, since memory holds so much or more. Once
   * some do all do until none is left there, so that none overtakes those that wait.
   */
  spills(above: TierCounts): boolean {
    const { waiting, reserved, tiers } = this.state
    if (tiers.disk.items + reserved.items > 0) return true
    return waiting.items >= above.items || waiting.tokens >= above.tokens
  }

  /** By their numbers, oldest first (S27). */
  get quarantined(): ReadonlyMap<number, QuarantinedItem> {
    return this.state.quarantine.entries
  }

  /** As of the last step: tick first where the present matters (idle times, ages). */
  counts(): CoreCounts {
    return countsOf(this.state)
  }
}

type Handler<T extends CoreEvent['type']> = (
  state: State,
  event: Extract<CoreEvent, { type: T }>,
) => void

const handlers: { readonly [T in CoreEvent['type']]: Handler<T> } = {
  createJob: (state, event) => createJob(state, event.job, event.weight, event.maxWaitMs),
  deleteJob: (state, event) => deleteJob(state, event.job),
  submit: (state, event) => submit(state, event.block),
  restore: (state, event) => {
    restore(state, event.lastSequence, event.jobs)
    restoreQuarantine(state, event.quarantined ?? [])
  },
  admit: (state, event) => admit(state, event.block),
  stored: (state, event) => onStored(state, event.items),
  loaded: (state, event) => onLoaded(state, event),
  lost: (state, event) => onLost(state, event),
  flush: (state, event) => flush(state, event.job),
  pauseJob: (state, event) => pauseJob(state, event.job),
  resumeJob: (state, event) => resumeJob(state, event.job),
  cancel: (state, event) => cancel(state, event.slots, event.numbers),
  cancelOnDisk: (state, event) =>
    endOnDisk(state, event, event.sequences, event.lengths, 'cancelled'),
  readOut: (state, event) => readOut(state, event.job),
  replay: (state, event) => replay(state, event.items),
  discard: (state, event) => discard(state, event.items),
  resultsRead: (state, event) => resultsRead(state, event.job, event.bytes),
  resultsStored: (state, event) => resultsStored(state, event.job, event.bytes),
  register: (state, event) => register(state, event.consumer, event.name, event.contract),
  results: (state, event) => onResults(state, event),
  earlierResults: (state, event) => onEarlierResults(state, event),
  renew: (state, event) => ofConsumer(state, event.consumer, renew),
  taken: (state, event) =>
    ofConsumer(state, event.consumer, (_, consumer) => onTaken(state, consumer, event.batch)),
  drain: (state, event) => ofConsumer(state, event.consumer, drain),
  disconnect: (state, event) =>
    ofConsumer(state, event.consumer, (_, consumer) => die(state, consumer, event.cause)),
  room: (state, event) =>
    ofConsumer(state, event.consumer, (_, consumer) => setRoom(state, consumer, event.hasRoom)),
  tick: (state) => tick(state),
  dispatch: (state) => dispatch(state),
}

function handle(state: State, event: CoreEvent): void {
  const handler = handlers[event.type] as Handler<CoreEvent['type']> | undefined
  if (handler === undefined) throw new CoreBug(`unknown event ${String(event.type)}`)
  handler(state, event)
}

/** News of a consumer that the core has let go may still be under way: they are ignored. */
function ofConsumer(
  state: State,
  id: number,
  act: (state: State, consumer: Consumer) => void,
): void {
  const consumer = state.consumers.get(id)
  if (consumer !== undefined) act(state, consumer)
}

function setRoom(state: State, consumer: Consumer, hasRoom: boolean): void {
  consumer.hasRoom = hasRoom
  refresh(state, consumer)
}

/** Fires every timer that is due, earliest first. */
function tick(state: State): void {
  const { timers, now } = state
  for (let timer = timers.takeDue(now); timer >= 0; timer = timers.takeDue(now)) {
    timerHandlers[timers.kind(timer)](state, timers.ref(timer))
  }
  expirePast(state)
}

/** By timer kind. */
const timerHandlers: Readonly<Record<number, (state: State, ref: number) => void>> = {
  [TIMER_GATE]: () => {}, // the gate is looked at after every step
  [TIMER_LANE_IDLE]: onLaneIdle,
  [TIMER_CLEANUP_IDLE]: onCleanupIdle,
  [TIMER_RENEWAL]: onRenewalTimer,
  [TIMER_LEASE_MAX]: onLeaseMax,
  [TIMER_LATE]: onLateTimer,
  [TIMER_RETRY]: onRetryDue,
  [TIMER_JOB_IDS]: onIdTimer,
  [TIMER_TAKING]: (state, id) => die(state, state.consumers.get(id)!, 'lease_max'),
  [TIMER_GROUP]: () => {}, // the dispatch steps that follow look at the groups
  [TIMER_DEADLINE]: onDeadline,
  [TIMER_DISK_DEADLINE]: onDiskDeadline,
  [TIMER_DUE]: onDueTimer,
  [TIMER_OWN_WAIT]: onOwnWaitOver,
}

function onRenewalTimer(state: State, id: number): void {
  const consumer = state.consumers.get(id)!
  if (onRenewalLate(state, consumer)) die(state, consumer, 'lease_timeout')
}

// Items with a wait of their own: shorter than their job's, or the job's for an item that comes back, or
// is read from disk, behind younger ones (S16, S28).
//
// Only these have a timer and an entry here; the others cost nothing. While such an item waits for a
// batch and its time is over it stands in its shape's due queue, by due time, too.

import { armDue, dueByJob, noteDue } from './due.js'
import { Heap } from './heap.js'
import { ITEM_QUEUED, ITEM_WINDOW } from './items.js'
import { jobOfItem } from './jobs.js'
import type { Shape } from './models.js'
import { shapeOfItem } from './shapes.js'
import { NS_PER_MS, type State } from './state.js'
import { DISK_ROUND_TO } from './submission.js'
import { TIMER_OWN_WAIT } from './timers.js'

/** A wait of its own, from acceptance to settlement. */
export interface OwnWait {
  readonly dueAt: number
  readonly timer: number
}

/** Items of a shape whose own wait is over: by due time, then by number. */
export class OwnDue {
  private readonly heap = new Heap()
  private readonly handles = new Map<number, number>()
  private readonly slots: number[] = []
  private readonly free: number[] = []

  get size(): number {
    return this.handles.size
  }

  has(slot: number): boolean {
    return this.handles.has(slot)
  }

  get firstAt(): number {
    const top = this.heap.top()
    return top < 0 ? Number.POSITIVE_INFINITY : this.heap.first(top)
  }

  /** The slot of the one that was due first, or -1. */
  get first(): number {
    const top = this.heap.top()
    return top < 0 ? -1 : this.slots[top]
  }

  add(slot: number, dueAt: number, sequence: number): void {
    if (this.handles.has(slot)) return
    const handle = this.free.pop() ?? this.slots.length
    this.slots[handle] = slot
    this.handles.set(slot, handle)
    this.heap.set(handle, dueAt, sequence)
  }

  /** Whether it stood here. */
  remove(slot: number): boolean {
    const handle = this.handles.get(slot)
    if (handle === undefined) return false
    this.handles.delete(slot)
    this.heap.remove(handle)
    this.free.push(handle)
    return true
  }
}

/** `ms` counts from acceptance; 0 = none. One that is longer than the job's changes nothing. */
export function setOwnWait(state: State, slot: number, ms: number): void {
  const ns = ms * NS_PER_MS
  const { maxWaitNs } = jobOfItem(state, slot)
  if (ns === 0 || (maxWaitNs > 0 && ns >= maxWaitNs)) return
  addWait(state, slot, state.items.acceptedAt.get(slot) + ns)
}

function addWait(state: State, slot: number, dueAt: number): void {
  const timer = state.timers.open(TIMER_OWN_WAIT, slot)
  if (dueAt > state.now) state.timers.set(timer, dueAt)
  state.ownWaits.set(slot, { dueAt, timer })
}

/** The item has ended. */
export function dropOwnWait(state: State, slot: number): void {
  if (state.ownWaits.size === 0) return
  const wait = state.ownWaits.get(slot)
  if (wait === undefined) return
  state.timers.close(wait.timer)
  state.ownWaits.delete(slot)
}

export function onOwnWaitOver(state: State, slot: number): void {
  const itemState = state.items.state.get(slot)
  if (itemState === ITEM_QUEUED || itemState === ITEM_WINDOW) standInDueQueue(state, slot)
}

/** An item has begun to wait for a batch, in its shape's queue or window (S16). */
export function beginWait(state: State, shape: Shape, slot: number): void {
  armDue(state, shape, dueByJob(state, slot))
  const isBehind = state.items.returns.get(slot) > 0 || isReadBehind(state, shape, slot)
  if (state.ownWaits.size > 0 || isBehind) waitOwn(state, slot, isBehind)
}

/**
 * Read from disk behind a younger item of its job: only where a shape takes from several disk shapes,
 * each of which is read in its own order.
 */
function isReadBehind(state: State, shape: Shape, slot: number): boolean {
  const { items } = state
  const { roundTo, lengthClasses } = state.config
  if (items.state.get(slot) !== ITEM_WINDOW) return false
  if (roundTo <= DISK_ROUND_TO && lengthClasses.length === 0) return false
  const job = items.job.get(slot)
  const acceptedAt = items.acceptedAt.get(slot)
  shape.youngestRead ??= new Map()
  const youngest = shape.youngestRead.get(job) ?? acceptedAt
  shape.youngestRead.set(job, Math.max(youngest, acceptedAt))
  return acceptedAt < youngest
}

/** What stands behind younger items of its job has a wait of its own from now on. */
function waitOwn(state: State, slot: number, isBehind: boolean): void {
  if (isBehind && !state.ownWaits.has(slot)) {
    const { maxWaitNs } = jobOfItem(state, slot)
    if (maxWaitNs > 0) addWait(state, slot, state.items.acceptedAt.get(slot) + maxWaitNs)
  }
  const wait = state.ownWaits.get(slot)
  if (wait !== undefined && wait.dueAt <= state.now) standInDueQueue(state, slot)
}

function standInDueQueue(state: State, slot: number): void {
  const shape = shapeOfItem(state, slot)
  const due = shape.ownDue()
  due.own ??= new OwnDue()
  due.own.add(slot, state.ownWaits.get(slot)!.dueAt, state.items.sequence.get(slot))
  noteDue(state, shape)
}

/** The item waits for a batch no more, or not in its shape. */
export function leaveDueQueue(state: State, shape: Shape, slot: number): void {
  if (shape.due.own?.remove(slot) === true) noteDue(state, shape)
}

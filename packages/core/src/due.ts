// Which shapes are due: they leave without waiting for a fuller batch (S16).
//
// A shape is due by its oldest item, whose job says how long it may be held back, or by items with a
// wait of their own (own-waits.ts), or because it was passed over for long (starvation.ts). One timer a
// shape, set to a time before which nothing in it can be due: items that leave only make that later, so
// a batch never moves it, and an arrival moves it only when its own time is earlier. When it fires the
// heads of the shape's jobs are looked at, never its items (S14).
//
// Each contract class keeps its due shapes by due time. A shape that is full for the class anyway is
// among them only for items with a wait of their own, and for a tier that was passed over for long: those
// may not wait for its turn (I7), all others keep the plain order (S12).

import type { ContractClass } from './contracts.js'
import type { DiskPart } from './disk.js'
import { jobOfItem } from './jobs.js'
import type { Model, Shape } from './models.js'
import type { Tier } from './shape-due.js'
import type { State } from './state.js'
import { TIMER_DUE } from './timers.js'

const NEVER = Number.POSITIVE_INFINITY
/** It is due by its oldest item: no time is waited for. */
const PAST = Number.NEGATIVE_INFINITY

/** Something that waits in the shape is due at `at`. */
export function armDue(state: State, shape: Shape, at: number): void {
  const { due } = shape
  if (at >= due.checkAt) return
  if (at <= state.now) noteDue(state, shape)
  else setTimer(state, shape, at)
}

/** What the shape holds changed: a due one is looked at anew, an empty one waits for no time. */
export function dueChanged(state: State, shape: Shape, isEmpty: boolean): void {
  const { due } = shape
  if (isEmpty ? due.checkAt < NEVER || due.isDue : due.isDue) noteDue(state, shape)
}

export function noteDue(state: State, shape: Shape): void {
  if (shape.due.noted) return
  shape.ownDue().noted = true
  state.dueNoted.push(shape)
}

export function onDueTimer(state: State, row: number): void {
  noteDue(state, state.shapes[row]!)
}

/** Looks at the shapes that changed since: before anyone asks what is due. */
export function updateDue(state: State): void {
  const { dueNoted } = state
  if (dueNoted.length === 0) return
  for (const shape of dueNoted) {
    shape.ownDue().noted = false
    if (state.shapes[shape.row] === shape) review(state, shape)
    shape.dropIdleDue()
  }
  dueNoted.length = 0
}

function review(state: State, shape: Shape): void {
  const { model } = shape
  const due = shape.ownDue()
  const oldest = oldestDueAt(state, shape)
  const isPast = oldest <= state.now
  due.oldestAt = isPast ? oldest : NEVER
  setTimer(state, shape, isPast ? PAST : oldest)
  if (!holdsAny(shape, 'queue')) due.starvedAt.queue = NEVER
  if (!holdsAny(shape, 'disk')) due.starvedAt.disk = NEVER
  for (const cls of model.classes) indexDue(cls, shape)
  if (state.gate.open) return
  const opens = (due.own?.size ?? 0) > 0 || (isPast && isDueByItsJob(state, shape))
  model.opensGate += Number(opens) - Number(due.opensGate)
  due.opensGate = opens
}

function setTimer(state: State, shape: Shape, at: number): void {
  const due = shape.ownDue()
  due.checkAt = at
  if (at > PAST && at < NEVER) {
    if (due.timer < 0) due.timer = state.timers.open(TIMER_DUE, shape.row)
    state.timers.set(due.timer, at)
  } else if (due.timer >= 0) state.timers.clear(due.timer)
}

/** Whether new work of the shape waits in the tier. */
export function holdsAny({ queue, window, onDiskItems }: Shape, tier: Tier): boolean {
  return tier === 'queue' ? queue.count > 0 : window.count + onDiskItems > 0
}

/** When the first item without a wait of its own is due, by the heads of the jobs. */
export function oldestDueAt(state: State, shape: Shape): number {
  let oldest = NEVER
  const look = (slot: number) => {
    oldest = Math.min(oldest, dueByJob(state, slot))
  }
  shape.queue.forEachHead(look)
  shape.window.forEachHead(look)
  for (const part of shape.parts.values()) oldest = Math.min(oldest, duePartAt(part))
  return oldest
}

/** No item of the part is due before by what its job says. */
export function duePartAt({ items, job, oldestAt }: DiskPart): number {
  const waits = items > 0 && !job.onHold && job.maxWaitNs > 0
  return waits ? oldestAt + job.maxWaitNs : NEVER
}

/** When an item is due by what its job says, or never. */
export function dueByJob(state: State, slot: number): number {
  const { maxWaitNs } = jobOfItem(state, slot)
  return maxWaitNs === 0 ? NEVER : state.items.acceptedAt.get(slot) + maxWaitNs
}

function isDueByItsJob(state: State, shape: Shape): boolean {
  let found = false
  const look = (slot: number) => {
    found ||= jobOfItem(state, slot).hasOwnWait && dueByJob(state, slot) <= state.now
  }
  shape.queue.forEachHead(look)
  shape.window.forEachHead(look)
  return found
}

function indexDue(cls: ContractClass, shape: Shape): void {
  const { due, row, key } = shape
  if (!cls.holds(key)) return
  const at = Math.min(due.ownAt, due.firstStarvedAt, isFullFor(cls, shape) ? NEVER : due.oldestAt)
  if (at < NEVER) cls.due.set(row, at, key)
  else cls.due.remove(row)
}

/** Its turn comes by the plain order (S13). */
export function isFullFor(cls: ContractClass, { key }: Shape): boolean {
  return cls.ready.has(key) || cls.readyOnDisk.has(key)
}

/** Indexes the model's due shapes for a class that has just come. */
export function indexClassDue(model: Model, cls: ContractClass): void {
  for (const shape of model.shapes.values()) if (shape.due.isDue) indexDue(cls, shape)
}

/** The shape is dropped: its row may be another's soon. */
export function forgetDue(state: State, shape: Shape): void {
  const { due, model, row } = shape
  if (due.timer >= 0) state.timers.close(due.timer)
  if (due.opensGate) model.opensGate--
  for (const cls of model.classes) cls.due.remove(row)
}

/**
 * The item without a wait of its own for which the shape is due: its oldest, of a tier that was passed
 * over for long if there is one; -1 when it is not due, or when that one is on disk.
 */
export function dueHead(state: State, { due, queue, window }: Shape): number {
  let best = -1
  let bestAt = NEVER
  const isStarved = due.isStarved
  const look = (slot: number) => {
    const byJob = dueByJob(state, slot)
    // What is passed over may have no due time: its oldest item goes first.
    const at = isStarved ? state.items.acceptedAt.get(slot) : byJob <= state.now ? byJob : NEVER
    if (at >= bestAt) return
    bestAt = at
    best = slot
  }
  if (!isStarved || due.starvedAt.queue < NEVER) queue.forEachHead(look)
  if (!isStarved || due.starvedAt.disk < NEVER) window.forEachHead(look)
  return best
}

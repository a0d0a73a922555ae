// Where an accepted item waits, and the counts that go with it.
//
// An item that waits stands in exactly one place: its shape's queue, its shape's reclaimed queue, a
// group, a retry timer, or its job's hold. `startWaiting` and `stopWaiting` are the only two that change how
// many items wait, so the gate, the limits and the end of input can trust the counts (I1).

import { CoreBug } from './core-bug.js'
import { queueInWindow, withdrawWindow } from './disk.js'
import { withdrawGrouped } from './groups.js'
import {
  ITEM_GROUPED,
  ITEM_HELD,
  ITEM_HELD_RECLAIMED,
  ITEM_QUEUED,
  ITEM_RECLAIMED,
  ITEM_RETRYING,
  ITEM_WINDOW,
} from './items.js'
import { backlogOf, type Job, jobOfItem } from './jobs.js'
import { queueChanged } from './lanes.js'
import type { Model } from './models.js'
import { leaveDueQueue } from './own-waits.js'
import { shapeOfItem } from './shapes.js'
import { enqueue } from './staging.js'
import { type State, type Tally, touch } from './state.js'

export function startWaiting(state: State, slot: number): void {
  countWaiting(state, slot, 1)
}

export function stopWaiting(state: State, slot: number): void {
  countWaiting(state, slot, -1)
}

function countWaiting(state: State, slot: number, sign: 1 | -1): void {
  const tokens = sign * state.items.length.get(slot)
  changeWaiting(state, jobOfItem(state, slot), shapeOfItem(state, slot).model, sign, tokens)
}

/** How many items of a job and model wait, whether they have rows or are counted on disk. */
export function changeWaiting(
  state: State,
  job: Job,
  model: Model,
  items: number,
  tokens: number,
): void {
  state.waiting.items += items
  state.waiting.tokens += tokens
  job.waiting += items
  backlogOf(job, model.id).items += items
  model.waitingItems += items
  model.waitingTokens += tokens
  if (!job.flushed) model.openItems += items
  if (!model.served) return
  state.served.waitingItems += items
  if (!job.flushed) state.served.openItems += items
}

/** Queues a waiting item as lane work: a new one, or one that a retry brings back (S1, S28). */
export function queueItem(state: State, slot: number, shape = shapeOfItem(state, slot)): void {
  const job = jobOfItem(state, slot)
  if (job.onHold) hold(state, job, slot)
  // A durable item needs no lane: its shape's window goes to whoever has a full batch (S8).
  else if (state.items.durable.get(slot) === 1) queueInWindow(state, slot)
  else enqueue(state, slot, shape)
}

function hold(state: State, job: Job, slot: number): void {
  state.items.state.set(slot, ITEM_HELD)
  job.held.push(state.items, slot)
  count(state.tiers.held, state, slot, 1)
}

/** Queues a waiting item as reclaimed work: never behind new ones (S12, S25). */
export function queueReclaimed(state: State, slot: number): void {
  const job = jobOfItem(state, slot)
  const shape = shapeOfItem(state, slot)
  if (job.onHold) {
    state.items.state.set(slot, ITEM_HELD_RECLAIMED)
    job.heldReclaimed.push(state.items, slot)
    count(state.tiers.held, state, slot, 1)
    return
  }
  state.items.state.set(slot, ITEM_RECLAIMED)
  shape.ownReclaimed().push(state.items, slot)
  count(state.tiers.reclaimed, state, slot, 1)
  shape.model.reclaimed.add(shape.key)
  touch(state, shape.model)
}

/** Takes an item out of the place where it waits; it waits still. */
export function withdraw(state: State, slot: number): void {
  const { items } = state
  const shape = shapeOfItem(state, slot)
  switch (items.state.get(slot)) {
    case ITEM_QUEUED: {
      const { count, tokens } = shape.queue
      leaveDueQueue(state, shape, slot)
      shape.queue.remove(items, slot)
      queueChanged(state, shape, count, tokens)
      return
    }
    case ITEM_WINDOW:
      withdrawWindow(state, slot)
      return
    case ITEM_RECLAIMED:
      withdrawReclaimed(state, slot)
      return
    case ITEM_RETRYING:
      state.timers.close(items.next.get(slot))
      count(state.tiers.retrying, state, slot, -1)
      return
    case ITEM_GROUPED:
      withdrawGrouped(state, slot)
      return
    case ITEM_HELD:
      jobOfItem(state, slot).held.remove(items, slot)
      count(state.tiers.held, state, slot, -1)
      return
    case ITEM_HELD_RECLAIMED:
      jobOfItem(state, slot).heldReclaimed.remove(items, slot)
      count(state.tiers.held, state, slot, -1)
      return
    default:
      throw new CoreBug(`item ${items.sequence.get(slot)} does not wait`)
  }
}

export function withdrawReclaimed(state: State, slot: number): void {
  const shape = shapeOfItem(state, slot)
  shape.reclaimed.remove(state.items, slot)
  count(state.tiers.reclaimed, state, slot, -1)
  if (shape.reclaimed.count === 0) shape.model.reclaimed.remove(shape.key)
}

export function count(tier: Tally, state: State, slot: number, sign: 1 | -1): void {
  tier.items += sign
  tier.tokens += sign * state.items.length.get(slot)
}

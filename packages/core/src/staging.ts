// Arrival of an item at its shape, and when a staged shape becomes a lane (S1, S2).

import { ITEM_QUEUED } from './items.js'
import { jobOfItem } from './jobs.js'
import { activateLane, queueChanged } from './lanes.js'
import type { Model, Shape } from './models.js'
import { beginWait } from './own-waits.js'
import type { State } from './state.js'

/** Queues an item in its shape's lane, else in staging, behind those that are there (S1). */
export function enqueue(state: State, slot: number, shape: Shape): void {
  const { count, tokens } = shape.queue
  state.items.state.set(slot, ITEM_QUEUED)
  shape.queue.push(state.items, slot, jobOfItem(state, slot).weight)
  queueChanged(state, shape, count, tokens)
  beginWait(state, shape, slot)
  if (!shape.active) activateIfDue(state, shape)
}

/** Looks at all staged shapes again, in order of padded length: the contracts changed (S2). */
export function reviewStaging(state: State, model: Model): void {
  for (let key = model.queued.next(0); key >= 0; key = model.queued.next(key + 1)) {
    const shape = model.shapes.get(key)!
    if (!shape.active) activateIfDue(state, shape)
  }
}

function activateIfDue(state: State, shape: Shape): void {
  const smallest = smallestFullCount(shape)
  // Without a consumer that holds it, it stays staged, whatever its count.
  if (smallest === 0) return
  if (shape.queue.count >= (state.config.activationThreshold ?? smallest)) {
    activateLane(state, shape)
  }
}

/** Over the classes that hold the shape; 0 when none does. */
function smallestFullCount(shape: Shape): number {
  let smallest = 0
  for (const cls of shape.model.classes) {
    if (!cls.holds(shape.key)) continue
    const count = cls.fullCount(shape.key)
    if (smallest === 0 || count < smallest) smallest = count
  }
  return smallest
}

// How far items and shapes are from being due (S16): what `fabric explain` and GET /v1/state tell.
//
// Questions only; nothing here changes the state, and nothing on the hot path asks.

import type { AgeingCounts } from './core-counts.js'
import { dueByJob, holdsAny, oldestDueAt } from './due.js'
import type { Explanation } from './explanation.js'
import { ITEM_WINDOW } from './items.js'
import type { Model } from './models.js'
import { shapeOfItem } from './shapes.js'
import { batchesPassedOver } from './starvation.js'
import type { State } from './state.js'

type QueuedFacts = Extract<Explanation, { state: 'queued' }>

/** Of an item in staging, a lane, the window, or the reclaimed queue. */
export function ageingOfItem(
  state: State,
  slot: number,
): Pick<QueuedFacts, 'dueAt' | 'passedOver' | 'isShapeDue'> {
  const shape = shapeOfItem(state, slot)
  const ownAt = state.ownWaits.get(slot)?.dueAt ?? Number.POSITIVE_INFINITY
  const dueAt = Math.min(ownAt, dueByJob(state, slot))
  const hasWait = dueAt < Number.POSITIVE_INFINITY
  const tier = state.items.state.get(slot) === ITEM_WINDOW ? 'disk' : 'queue'
  const limit = state.config.starveBatches
  return {
    dueAt: hasWait ? dueAt : null,
    passedOver: hasWait || limit === 0 ? null : { batches: batchesPassedOver(shape, tier), limit },
    isShapeDue: shape.due.isDue,
  }
}

export function ageingOfModel(state: State, model: Model): AgeingCounts {
  let dueShapes = 0
  let passedOverShapes = 0
  let nextAt = Number.POSITIVE_INFINITY
  for (const shape of model.shapes.values()) {
    if (!holdsAny(shape, 'queue') && !holdsAny(shape, 'disk')) continue
    if (shape.due.isDue) dueShapes++
    if (shape.due.isStarved) passedOverShapes++
    const at = oldestDueAt(state, shape)
    if (at > state.now) nextAt = Math.min(nextAt, at)
  }
  const nextDueInNs = nextAt < Number.POSITIVE_INFINITY ? nextAt - state.now : null
  return { dueShapes, passedOverShapes, nextDueInNs }
}

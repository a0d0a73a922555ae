// Work that is passed over again and again: it has no wait that would bring it forward, and there is never
// enough of it for a full batch, or what is full goes before it every time (S16, I7).
//
// A model keeps its shapes, by tier, in the order in which they were last served. Only the first of them
// is looked at after a batch: it has waited longest. It is due then though it be full, for its turn in
// the plain order has not come: a lane has none while the disk tier always has a full batch (S12), and
// what memory had no room for has none while a lane always has one.

import { dueByJob, duePartAt, holdsAny, noteDue } from './due.js'
import { jobOfItem } from './jobs.js'
import type { Model, Shape } from './models.js'
import type { Tier } from './shape-due.js'
import type { State } from './state.js'

const NEVER = Number.POSITIVE_INFINITY

const handleOf = ({ row }: Shape, tier: Tier) => 2 * row + Number(tier === 'disk')
const tierOf = (handle: number): Tier => (handle % 2 === 1 ? 'disk' : 'queue')
const rowOf = (handle: number) => Math.floor(handle / 2)

/** The tier has items of the shape that it had not before: from now on they can be passed over. */
export function beginPassingOver(state: State, shape: Shape, tier: Tier): void {
  if (state.config.starveBatches > 0) setServed(shape, tier, shape.model.batches)
}

/** The batch that is being made took items of the shape from the tier. */
export function noteServed(state: State, shape: Shape, tier: Tier): void {
  if (state.config.starveBatches === 0) return
  const { model, due } = shape
  setServed(shape, tier, model.batches + 1)
  if (due.starvedAt[tier] === NEVER) return
  due.starvedAt[tier] = NEVER
  noteDue(state, shape)
}

function setServed(shape: Shape, tier: Tier, batches: number): void {
  shape.model.lastServed.note(handleOf(shape, tier), batches)
}

/** A batch of the model left: what was served least recently may be due now. */
export function notePassedOver(state: State, model: Model): void {
  const { starveBatches } = state.config
  model.batches++
  if (starveBatches === 0) return
  const { lastServed } = model
  for (let handle = lastServed.first; handle >= 0; handle = lastServed.first) {
    if (model.batches - lastServed.servedAt(handle) < starveBatches) return
    const shape = state.shapes[rowOf(handle)]!
    const tier = tierOf(handle)
    if (!holdsAny(shape, tier)) {
      lastServed.remove(handle)
      continue
    }
    // Looked at again after as many batches: what no free consumer holds must not hide the others.
    setServed(shape, tier, model.batches)
    if (!waitsForNoTime(state, shape, tier)) return
    shape.ownDue().starvedAt[tier] = state.now
    noteDue(state, shape)
    return
  }
}

/** Whether an item of the shape has no wait, or waits on though that is over. */
function waitsForNoTime(state: State, shape: Shape, tier: Tier): boolean {
  let found = false
  const look = (slot: number) => {
    found ||= jobOfItem(state, slot).maxWaitNs === 0 || dueByJob(state, slot) <= state.now
  }
  if (tier === 'queue') shape.queue.forEachHead(look)
  else shape.window.forEachHead(look)
  for (const part of tier === 'queue' ? [] : shape.parts.values()) {
    const { items, job } = part
    const isWithout = items > 0 && !job.onHold && job.maxWaitNs === 0
    found ||= isWithout || duePartAt(part) <= state.now
  }
  return found
}

/** Batches of the model that took nothing of the shape from the tier since it was last served, or looked at. */
export function batchesPassedOver(shape: Shape, tier: Tier): number {
  const { lastServed, batches } = shape.model
  return holdsAny(shape, tier) ? batches - lastServed.servedAt(handleOf(shape, tier)) : 0
}

/** The shape is dropped: its row may be another's soon. */
export function forgetPassedOver(shape: Shape): void {
  shape.model.lastServed.remove(handleOf(shape, 'queue'))
  shape.model.lastServed.remove(handleOf(shape, 'disk'))
}

// Shapes that are passed over again and again: their items have no wait that would bring them forward,
// and there are never enough of them for a full batch (S16, I7).
//
// A model keeps its shapes in the order in which they were last served. Only the first of them is
// looked at after a batch: it has waited longest.

import { noteDue } from './due.js'
import { jobOfItem } from './jobs.js'
import type { Model, Shape } from './models.js'
import type { State } from './state.js'

/** The shape has items that it had not before: from now on it can be passed over. */
export function beginPassingOver(state: State, { model, row, key }: Shape): void {
  if (state.config.starveBatches > 0) model.lastServed.set(row, model.batches, key)
}

/** The batch that is being made took items of the shape. */
export function noteServed(state: State, shape: Shape): void {
  if (state.config.starveBatches === 0) return
  const { model, row, key, due } = shape
  model.lastServed.set(row, model.batches + 1, key)
  if (due.starvedAt === Number.POSITIVE_INFINITY) return
  due.starvedAt = Number.POSITIVE_INFINITY
  noteDue(state, shape)
}

/** A batch of the model left: the shape that was served least recently may be due now. */
export function notePassedOver(state: State, model: Model): void {
  const { starveBatches } = state.config
  model.batches++
  if (starveBatches === 0) return
  const { lastServed } = model
  for (let row = lastServed.top(); row >= 0; row = lastServed.top()) {
    if (model.batches - lastServed.first(row) < starveBatches) return
    const shape = state.shapes[row]!
    if (shape.queue.count + shape.window.count + shape.onDiskItems === 0) {
      lastServed.remove(row)
      continue
    }
    // Looked at again after as many batches: what no free consumer holds must not hide the others.
    lastServed.set(row, model.batches, shape.key)
    if (!hasItemWithoutWait(shape, state)) return
    shape.due.starvedAt = state.now
    noteDue(state, shape)
    return
  }
}

function hasItemWithoutWait(shape: Shape, state: State): boolean {
  let found = false
  const look = (slot: number) => {
    found ||= jobOfItem(state, slot).maxWaitNs === 0
  }
  shape.queue.forEachHead(look)
  shape.window.forEachHead(look)
  for (const { items, job } of shape.parts.values()) {
    found ||= items > 0 && !job.onHold && job.maxWaitNs === 0
  }
  return found
}

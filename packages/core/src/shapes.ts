// Shapes and models come with their first item and go with their last: producers choose lengths and
// model numbers freely, so neither may leave anything behind.

import { forgetDue } from './due.js'
import { Model, Shape } from './models.js'
import { forgetPassedOver } from './starvation.js'
import type { State } from './state.js'

export function modelOf(state: State, id: number): Model {
  let model = state.models.get(id)
  if (model === undefined) {
    model = new Model(id)
    state.models.set(id, model)
  }
  return model
}

/** The shape of a length. */
export function shapeOf(state: State, model: Model, length: number): Shape {
  const { lengthClasses, config } = state
  const key = keyOfLength(state, length)
  let shape = model.shapes.get(key)
  if (shape === undefined) {
    const row = state.freeShapeRows.pop() ?? state.shapes.length
    const newMixedList = lengthClasses.isMixed(key) ? state.newMixedList : null
    shape = new Shape(row, model, key, key * config.roundTo, newMixedList)
    state.shapes[row] = shape
    model.shapes.add(shape)
  }
  return shape
}

/** Key of the shape of a length. */
export function keyOfLength(state: State, length: number): number {
  const { lengthClasses } = state
  return lengthClasses.classKey(lengthClasses.paddedKey(length))
}

export function shapeOfItem(state: State, slot: number): Shape {
  return state.shapes[state.items.shape.get(slot)]!
}

/** Forgets a shape without items or lane, and a model without shapes or consumers. */
export function dropShapeIfUnused(state: State, shape: Shape): void {
  if (shape.items > 0 || shape.active) return
  for (const cls of shape.model.classes) cls.spans?.forget(shape)
  forgetDue(state, shape)
  forgetPassedOver(shape)
  shape.model.shapes.delete(shape)
  state.shapes[shape.row] = null
  state.freeShapeRows.push(shape.row)
  dropModelIfUnused(state, shape.model)
}

export function dropModelIfUnused(state: State, model: Model): void {
  if (model.shapes.size > 0 || model.served) return
  if (model.cleanup.timer >= 0) state.timers.close(model.cleanup.timer)
  model.cleanup.timer = -1
  state.models.delete(model.id)
}

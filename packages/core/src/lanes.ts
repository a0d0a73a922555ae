// Lanes: the queues of active shapes, what is ready in them, and when they stop (S3, S13, S14).
//
// Each contract class keeps the set of its ready lanes. It changes only when what a lane holds crosses
// what the class is ready at, so an arrival costs one comparison per class and a search none per lane.

import type { ContractClass } from './contracts.js'
import { dueChanged } from './due.js'
import type { Model, Shape } from './models.js'
import type { ReadyAtList } from './ready-at.js'
import { dropShapeIfUnused } from './shapes.js'
import { beginPassingOver } from './starvation.js'
import { NS_PER_MS, type State, touch } from './state.js'
import { TIMER_LANE_IDLE } from './timers.js'

/** Brings every count up to date after a shape's queue went from `before` items to what it has. */
export function queueChanged(
  state: State,
  shape: Shape,
  before: number,
  tokensBefore: number,
): void {
  const { model, queue } = shape
  const items = queue.count - before
  const tokens = queue.tokens - tokensBefore
  const tier = shape.active ? state.tiers.lane : state.tiers.staging
  tier.items += items
  tier.tokens += tokens
  model.queueItems += items
  model.queueTokens += tokens
  model.queuePaddedTokens += items * shape.paddedLength
  if (model.served) {
    state.served.queueItems += items
    state.served.queueTokens += tokens
  }
  if (before === 0 && queue.count > 0) {
    link(shape)
    shape.servedAt = model.batches
    beginPassingOver(state, shape, 'queue')
  }
  if (before > 0 && queue.count === 0) unlink(shape)
  noteForSpans(shape)
  if (shape.active) laneChanged(state, shape, before, tokensBefore)
  dueChanged(state, shape, queue.count === 0)
  touch(state, model)
}

/** Among the model's shapes with queued items, in order of length. */
function link(shape: Shape): void {
  const { model, key } = shape
  shape.shorter = model.shapes.get(model.queued.previous(key - 1)) ?? null
  shape.longer = model.shapes.get(model.queued.next(key + 1)) ?? null
  if (shape.shorter !== null) shape.shorter.longer = shape
  if (shape.longer !== null) shape.longer.shorter = shape
  model.queued.add(key)
}

function unlink(shape: Shape): void {
  if (shape.shorter !== null) shape.shorter.longer = shape.longer
  if (shape.longer !== null) shape.longer.shorter = shape.shorter
  shape.shorter = null
  shape.longer = null
  shape.model.queued.remove(shape.key)
}

function noteForSpans(shape: Shape): void {
  const { classes } = shape.model
  for (let i = 0; i < classes.length; i++) classes[i].spans?.note(shape.key)
}

function laneChanged(state: State, shape: Shape, before: number, tokensBefore: number): void {
  const after = shape.queue.count
  indexLane(shape, before, tokensBefore)
  if (before === 0 && after > 0) state.timers.clear(shape.idleTimer)
  if (before > 0 && after === 0) startIdleTimer(state, shape)
}

/** A staged shape becomes a lane, its items with it, in their order (S2). */
export function activateLane(state: State, shape: Shape): void {
  const { count, tokens } = shape.queue
  shape.active = true
  shape.model.lanesActive++
  state.lanesActive++
  state.tiers.staging.items -= count
  state.tiers.staging.tokens -= tokens
  state.tiers.lane.items += count
  state.tiers.lane.tokens += tokens
  shape.idleTimer = state.timers.open(TIMER_LANE_IDLE, shape.row)
  indexLane(shape, 0, 0)
  dueChanged(state, shape, false)
  noteForSpans(shape)
  state.effects.push({
    type: 'activate',
    model: shape.model.id,
    paddedLength: shape.paddedLength,
  })
}

function startIdleTimer(state: State, shape: Shape): void {
  state.timers.set(shape.idleTimer, state.now + state.config.laneIdleMs * NS_PER_MS)
}

/** The lane has been empty for laneIdle (S3). */
export function onLaneIdle(state: State, row: number): void {
  const shape = state.shapes[row]!
  state.timers.close(shape.idleTimer)
  shape.idleTimer = -1
  shape.active = false
  shape.model.lanesActive--
  state.lanesActive--
  dropShapeIfUnused(state, shape)
}

function indexLane(shape: Shape, before: number, tokensBefore: number): void {
  const { classes } = shape.model
  const { count, tokens } = shape.queue
  const readyAt = readyAtOf(shape)
  for (let i = 0; i < classes.length; i++) {
    const at = readyAt[i]
    if (at === null) continue
    indexLaneInClass(
      classes[i],
      shape.key,
      at.batches(before, tokensBefore),
      at.batches(count, tokens),
    )
  }
}

function indexLaneInClass(cls: ContractClass, key: number, had: number, has: number): void {
  cls.fullBatches += has - had
  if (had === 0 && has > 0) cls.ready.add(key)
  if (had > 0 && has === 0) cls.ready.remove(key)
}

/** Indexes all lanes of the model for a class that has just come. */
export function indexClass(model: Model, cls: ContractClass): void {
  for (let key = model.queued.next(0); key >= 0; key = model.queued.next(key + 1)) {
    const shape = model.shapes.get(key)!
    cls.spans?.note(key)
    const at = cls.readyAt(key)
    if (!shape.active || at === null) continue
    indexLaneInClass(cls, key, 0, at.batches(shape.queue.count, shape.queue.tokens))
  }
}

function readyAtOf(shape: Shape): ReadyAtList {
  const { model } = shape
  const { classes, classesVersion } = model
  if (shape.readyAtVersion !== classesVersion) {
    const list = classes.map((cls) => cls.readyAt(shape.key))
    shape.readyAt = model.readyAtLists.shared(list, classesVersion)
    shape.readyAtVersion = classesVersion
  }
  return shape.readyAt
}

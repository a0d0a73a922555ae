// Why an item is where it is: what `fabric explain` and GET /v1/items/{id} say.
//
// Facts only; the words are the shell's. Nothing here changes the state.

import { ageingOfItem } from './ageing.js'
import type { Consumer } from './consumers.js'
import { gateCounts } from './counts.js'
import type { Explanation, ItemFacts } from './explanation.js'
import {
  ITEM_GROUPED,
  ITEM_HELD,
  ITEM_HELD_RECLAIMED,
  ITEM_LEASED,
  ITEM_RECLAIMED,
  ITEM_RETRYING,
} from './items.js'
import { jobOfItem } from './jobs.js'
import { shapeOfItem } from './shapes.js'
import type { State } from './state.js'

export function explain(state: State, slot: number): ItemFacts {
  const { items } = state
  return {
    item: items.sequence.get(slot),
    model: shapeOfItem(state, slot).model.id,
    length: items.length.get(slot),
    attempts: items.attempts.get(slot),
    deliveries: items.deliveries.get(slot),
    acceptedAt: items.acceptedAt.get(slot),
    deadlineAt: deadlineOf(state, slot),
    why: whyOf(state, slot),
  }
}

function deadlineOf(state: State, slot: number): number | null {
  const timer = state.deadlines.get(slot)
  return timer === undefined ? null : state.timers.at(timer)
}

function whyOf(state: State, slot: number): Explanation {
  const { items } = state
  switch (items.state.get(slot)) {
    case ITEM_LEASED:
      return leased(state.leases.atRow(items.next.get(slot)))
    case ITEM_RETRYING:
      return { state: 'retrying', dueAt: state.timers.at(items.next.get(slot)) }
    case ITEM_HELD:
    case ITEM_HELD_RECLAIMED:
      return onHold(state, slot)
    case ITEM_GROUPED:
      return grouped(state, slot)
    default:
      return queued(state, slot)
  }
}

function leased(batch: {
  readonly consumer: Consumer
  readonly number: number
  readonly takenAt: number
  readonly items: Int32Array
}): Explanation {
  const { consumer, number, takenAt } = batch
  return {
    state: 'leased',
    consumer: consumer.name,
    batch: number,
    batchItems: batch.items.length,
    takenAt: takenAt < 0 ? null : takenAt,
  }
}

function onHold(state: State, slot: number): Explanation {
  const { paused } = jobOfItem(state, slot)
  return { state: 'held', reason: paused ? 'paused' : 'results_unread' }
}

function grouped(state: State, slot: number): Explanation {
  const group = state.groups.rows[state.items.next.get(slot)]!
  if (group.heldBy !== null) return onHold(state, slot)
  return {
    state: 'grouped',
    kind: group.kind,
    group: group.number,
    items: group.live,
    deaths: group.evidence,
    consumers: group.model.members.length,
    anotherConsumerUntil: group.waitsUntil > state.now ? group.waitsUntil : null,
    gate: gateCounts(state),
  }
}

function tierOf(itemState: number, active: boolean): 'reclaimed' | 'lane' | 'staging' {
  if (itemState === ITEM_RECLAIMED) return 'reclaimed'
  return active ? 'lane' : 'staging'
}

function queued(state: State, slot: number): Explanation {
  const { items, config } = state
  const shape = shapeOfItem(state, slot)
  const { model } = shape
  const counts = model.classes.filter((cls) => cls.holds(shape.key))
  const smallest = Math.min(...counts.map((cls) => cls.fullCount(shape.key)))
  const needed = shape.active ? smallest : (config.activationThreshold ?? smallest)
  return {
    state: 'queued',
    tier: tierOf(items.state.get(slot), shape.active),
    paddedLength: shape.paddedLength,
    shapeItems: shape.queue.count,
    neededItems: counts.length === 0 ? null : needed,
    consumers: model.members.length,
    ...ageingOfItem(state, slot),
    inCleanup: model.cleanup.active,
    inputEnded: model.inputEnded,
    gate: gateCounts(state),
  }
}

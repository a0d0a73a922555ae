// Leases: from dispatch to settlement (S23, S24, S26).
//
// What a consumer sends may be late, doubled or wrong; none of it may throw. What it has not yet
// said of a batch, and what was settled without it, stand apart, so a batch leaves its consumer when
// the consumer has spoken and an item ends when the first result of it came.

import { type Consumer, refresh, setHoldsSuspects } from './consumers.js'
import {
  type CoreEvent,
  RESULT_COMPLETED,
  RESULT_FAILED,
  RESULT_NACK,
  RESULT_OUT_OF_MEMORY,
  RESULT_RETRY,
} from './events.js'
import type { Group } from './group-table.js'
import { ITEM_ENDED, ITEM_FREE, ITEM_LEASED } from './items.js'
import { jobOfItem } from './jobs.js'
import { type Batch, type LateBatch, REPORTED, SETTLED_ELSEWHERE } from './lease-table.js'
import { outOfMemory } from './out-of-memory.js'
import { die } from './reclaim.js'
import { comeBack, excuseDelivery } from './retry.js'
import { Settlement } from './settle.js'
import { NS_PER_MS, type State } from './state.js'
import { TIMER_LEASE_MAX } from './timers.js'
import { stopWaiting, withdraw } from './waiting.js'

type ResultsEvent = Extract<CoreEvent, { type: 'results' }>

/** Gives packed items to a consumer: they stop waiting and stand in its channel. */
export function lease(
  state: State,
  consumer: Consumer,
  slots: readonly number[],
  group: Group | null = null,
): Batch {
  const { items } = state
  const batch = state.leases.open(consumer, new Int32Array(slots), group)
  for (let index = 0; index < slots.length; index++) {
    const slot = slots[index]
    stopWaiting(state, slot)
    items.state.set(slot, ITEM_LEASED)
    items.next.set(slot, batch.row)
    items.previous.set(slot, index)
    jobOfItem(state, slot).leased++
  }
  state.leasedItems += slots.length
  consumer.channel.push(batch)
  return batch
}

/** The item is no longer leased; where it goes is the caller's. */
export function unlease(state: State, slot: number): void {
  state.leasedItems--
  jobOfItem(state, slot).leased--
}

/** The consumer has started on a batch of its channel. Older news are ignored. */
export function onTaken(state: State, consumer: Consumer, number: number): void {
  const batch = state.leases.live.get(number)
  if (batch === undefined || batch.consumer !== consumer || batch.takenAt >= 0) return
  take(state, batch)
}

/** False when the consumer took more than it may: it is dead then (I6). */
function take(state: State, batch: Batch): boolean {
  const { consumer } = batch
  if (consumer.inFlight.length >= consumer.cls.contract.maxInFlight) {
    die(state, consumer, 'protocol_error')
    return false
  }
  consumer.channel.splice(consumer.channel.indexOf(batch), 1)
  consumer.inFlight.push(batch)
  batch.takenAt = state.now
  batch.timer = state.timers.open(TIMER_LEASE_MAX, batch.number)
  state.timers.set(batch.timer, state.now + state.config.leaseMaxMs * NS_PER_MS)
  countDelivery(state, batch)
  state.timers.clear(consumer.takingTimer)
  refresh(state, consumer)
  return true
}

/** A delivery counts when the batch is taken, or may have been (S25). */
export function countDelivery(state: State, batch: Batch): void {
  const { deliveries } = state.items
  const isSuspect = batch.group?.kind === 'suspect'
  for (const slot of batch.items) {
    if (slot < 0) continue
    deliveries.set(slot, Math.min(255, deliveries.get(slot) + 1))
    if (isSuspect) excuseDelivery(state, slot)
  }
}

export function onResults(state: State, event: ResultsEvent): void {
  const batch = state.leases.live.get(event.batch)
  // A lease of another life of the broker names a batch that this one has not made (S26).
  const known = event.brokerLife === state.config.brokerLife
  if (known && batch !== undefined && batch.consumer.id === event.consumer) {
    // A result says that the batch was taken, if the message that says so was lost.
    if (batch.takenAt >= 0 || take(state, batch)) settleLease(state, batch, event)
    else tellLate(state, event, event.index, false)
    return
  }
  const late = known ? state.leases.late.get(event.batch) : undefined
  if (late === undefined) tellLate(state, event, event.index, true)
  else settleLate(state, late, event)
}

/** Items of a batch that did not fit the device's memory (S28). */
interface TooMuch {
  readonly slots: number[]
  readonly places: number[]
}

function settleLease(state: State, batch: Batch, event: ResultsEvent): void {
  const settlement = new Settlement(state, event.consumer, batch.number)
  const tooMuch: TooMuch = { slots: [], places: [] }
  let dropped: number[] | null = null
  for (let i = 0; i < event.index.length; i++) {
    const index = event.index[i]
    const slot = index < batch.items.length ? batch.items[index] : REPORTED
    if (slot !== REPORTED) {
      batch.items[index] = REPORTED
      batch.unreported--
    }
    if (slot < 0) {
      dropped ??= []
      dropped.push(index)
    } else {
      unlease(state, slot)
      if (event.outcome[i] === RESULT_OUT_OF_MEMORY) {
        tooMuch.slots.push(slot)
        tooMuch.places.push(index)
      } else settleAs(state, settlement, slot, index, event.outcome[i])
    }
  }
  if (tooMuch.slots.length > 0) {
    outOfMemory(state, batch, tooMuch.slots, tooMuch.places, settlement)
  }
  settlement.tell()
  if (dropped !== null) tellLate(state, event, dropped, false)
  if (batch.unreported === 0) finish(state, batch)
}

function settleAs(
  state: State,
  settlement: Settlement,
  slot: number,
  index: number,
  outcome: number,
): void {
  switch (outcome) {
    case RESULT_COMPLETED:
      settlement.end(slot, index, 'completed')
      return
    case RESULT_FAILED:
      settlement.end(slot, index, 'failed')
      return
    case RESULT_NACK:
      comeBack(state, settlement, slot, index, false)
      return
    case RESULT_RETRY:
      comeBack(state, settlement, slot, index, true)
      return
    default:
      // An outcome of a newer consumer: tried again rather than lost, and bounded by maxAttempts.
      comeBack(state, settlement, slot, index, true)
  }
}

function finish(state: State, batch: Batch): void {
  const { consumer } = batch
  closeLease(state, batch)
  consumer.inFlight.splice(consumer.inFlight.indexOf(batch), 1)
  if (batch.group?.kind === 'suspect') endSuspicion(state, consumer)
  state.effects.push({ type: 'batchDone', consumer: consumer.id, batch: batch.number })
  refresh(state, consumer)
}

/** The consumer lived: whatever of the group comes back is under suspicion no more (S27). */
function endSuspicion(state: State, consumer: Consumer): void {
  if (!consumer.holdsSuspects) return
  setHoldsSuspects(consumer, false)
  refresh(state, consumer)
}

export function closeLease(state: State, batch: Batch): void {
  if (batch.timer >= 0) state.timers.close(batch.timer)
  state.leases.close(batch)
}

/** Results for a batch that was taken back: the first result of an item wins (S26). */
function settleLate(state: State, late: LateBatch, event: ResultsEvent): void {
  const settlement = new Settlement(state, event.consumer, event.batch)
  const dropped: number[] = []
  for (let i = 0; i < event.index.length; i++) {
    const index = event.index[i]
    const slot = index < late.slots.length ? late.slots[index] : -1
    const outcome = event.outcome[i]
    // Only an end counts: a wish to try again is granted already, the item was taken back.
    const ends = outcome === RESULT_COMPLETED || outcome === RESULT_FAILED
    if (!ends || slot < 0 || !isUnsettled(state, slot, late.sequences[index])) {
      dropped.push(index)
      continue
    }
    pullOut(state, slot)
    settlement.end(slot, index, outcome === RESULT_COMPLETED ? 'completed' : 'failed')
  }
  settlement.tell()
  if (dropped.length > 0) tellLate(state, event, dropped, false)
}

/** Whether the slot still belongs to that item: slots are used anew, sequence numbers are not. */
function isUnsettled(state: State, slot: number, sequence: number): boolean {
  const itemState = state.items.state.get(slot)
  if (itemState === undefined || itemState === ITEM_FREE || itemState === ITEM_ENDED) return false
  return state.items.sequence.get(slot) === sequence
}

/** Takes an unsettled item out of wherever it is: a queue, a timer, another consumer's batch. */
export function pullOut(state: State, slot: number): void {
  if (state.items.state.get(slot) === ITEM_LEASED) {
    const batch = state.leases.atRow(state.items.next.get(slot))
    batch.items[state.items.previous.get(slot)] = SETTLED_ELSEWHERE
    unlease(state, slot)
    return
  }
  withdraw(state, slot)
  stopWaiting(state, slot)
}

export function tellLate(
  state: State,
  event: Pick<ResultsEvent, 'consumer' | 'batch'>,
  places: ArrayLike<number>,
  unknownLease: boolean,
): void {
  const { consumer, batch } = event
  const index = Uint32Array.from(places)
  state.lateResults += index.length
  state.effects.push({ type: 'late', consumer, batch, items: index.length, index, unknownLease })
}

// Death, drain and reclaim: work that comes back from a consumer (S24, S25, S26).

import { type Consumer, forget, leave, refresh, setHoldsSuspects } from './consumers.js'
import type { Death, DeathCause } from './effects.js'
import { type Batch, LateBatch } from './lease-table.js'
import { closeLease, countDelivery, unlease } from './leases.js'
import { isDeliveredTooOften } from './retry.js'
import { Settlement } from './settle.js'
import { NS_PER_MS, type State } from './state.js'
import { queueAndFit, suspect } from './suspects.js'
import { queueReclaimed, startWaiting } from './waiting.js'

/** The consumer is gone: all that it held becomes reclaimed work. */
export function die(state: State, consumer: Consumer, cause: DeathCause): void {
  const { channel, inFlight } = consumer
  state.effects.push({ type: 'dead', consumer: consumer.id, cause })
  // The head of the channel may have been taken, and the news of it lost with the connection.
  if (channel.length > 0) countDelivery(state, channel[0])
  const batches = [...inFlight, ...channel]
  // Whoever lives and takes nothing has not taken the head either (S24).
  const taken = inFlight.length + (cause === 'lease_max' ? 0 : Math.min(1, channel.length))
  inFlight.length = 0
  channel.length = 0
  consumer.gone = true
  if (!consumer.draining) leave(state, consumer)
  takeBack(state, consumer, batches, taken, { consumer: consumer.name, at: state.now, cause })
  forget(state, consumer)
  if (cause !== 'connection_closed') {
    state.effects.push({ type: 'close', consumer: consumer.id, cause })
  }
}

/** Takes nothing new: its channel goes back, what it has taken it may settle. */
export function drain(state: State, consumer: Consumer): void {
  if (consumer.draining) return
  consumer.draining = true
  const batches = consumer.channel.splice(0)
  leave(state, consumer)
  takeBack(state, consumer, batches, 0, null)
}

/** A batch taken longer than leaseMax ago goes back though the connection lives (S24). */
export function onLeaseMax(state: State, number: number): void {
  const batch = state.leases.live.get(number)!
  const { consumer } = batch
  consumer.inFlight.splice(consumer.inFlight.indexOf(batch), 1)
  if (batch.group?.kind === 'suspect' && consumer.holdsSuspects) setHoldsSuspects(consumer, false)
  refresh(state, consumer)
  takeBack(state, consumer, [batch], 0, null)
}

/** The first `taken` of the batches were taken when the consumer died (S27). */
function takeBack(
  state: State,
  consumer: Consumer,
  batches: readonly Batch[],
  taken: number,
  death: Death | null,
): void {
  if (batches.length === 0) return
  const settlements: Settlement[] = []
  const slots: number[] = []
  batches.forEach((batch, i) => {
    const settlement = new Settlement(state, consumer.id, batch.number)
    const again = takeBackBatch(state, batch, settlement, i < taken ? death : null)
    for (const slot of again) slots.push(slot)
    settlements.push(settlement)
  })
  state.reclaimedItems += slots.length
  state.effects.push({
    type: 'reclaim',
    consumer: consumer.id,
    batches: batches.map((batch) => batch.number),
    items: slots.length,
    slots: Int32Array.from(slots),
  })
  for (const settlement of settlements) settlement.tell()
}

/** Answers what waits again. `death`: the consumer had taken the batch when it died. */
function takeBackBatch(
  state: State,
  batch: Batch,
  settlement: Settlement,
  death: Death | null,
): readonly number[] {
  rememberLate(state, batch)
  closeLease(state, batch)
  const slots: number[] = []
  const places: number[] = []
  batch.items.forEach((slot, index) => {
    if (slot < 0) return
    unlease(state, slot)
    if (isDeliveredTooOften(state, slot)) {
      settlement.end(slot, index, 'failed', 'max_deliveries')
      return
    }
    startWaiting(state, slot)
    slots.push(slot)
    places.push(index)
  })
  if (slots.length === 0) return slots
  const { group } = batch
  if (death !== null) return suspect(state, batch, slots, places, death, settlement)
  if (group !== null) queueAndFit(state, group.part(group.number, slots))
  else for (const slot of slots) queueReclaimed(state, slot)
  return slots
}

/** So that a result which is under way still settles its item, by sequence number (S26). */
function rememberLate(state: State, batch: Batch): void {
  const forgetAt = state.now + state.config.leaseMaxMs * NS_PER_MS
  const sequences = Float64Array.from(batch.items, (slot) =>
    slot < 0 ? 0 : state.items.sequence.get(slot),
  )
  state.leases.remember(batch.number, new LateBatch(batch.items.slice(), sequences, forgetAt))
  if (!state.timers.isSet(state.lateTimer)) state.timers.set(state.lateTimer, forgetAt)
}

/** Forgets batches that were taken back leaseMax ago: oldest first, all wait equally long. */
export function onLateTimer(state: State): void {
  for (const [number, late] of state.leases.late) {
    if (late.forgetAt > state.now) {
      state.timers.set(state.lateTimer, late.forgetAt)
      return
    }
    state.leases.late.delete(number)
  }
}

// A batch that was too much for the device's memory (S28).
//
// It counts no failure: it comes back in halves, and the consumer gets batches of half the budget for
// a while. An item that is too much all by itself fails like any other that cannot be worked on.

import { type Consumer, setEffectiveTokens } from './consumers.js'
import { halves, newGroup } from './groups.js'
import type { Batch } from './lease-table.js'
import { roundUp } from './length-classes.js'
import { comeBack, isDeliveredTooOften } from './retry.js'
import type { Settlement } from './settle.js'
import type { State } from './state.js'
import { queueAndFit } from './suspects.js'
import { startWaiting } from './waiting.js'

/** Batches for which a consumer's budget stays halved. */
const REDUCED_BATCHES = 100

/** `places[i]` is the place in the batch of the unleased item `slots[i]`. */
export function outOfMemory(
  state: State,
  batch: Batch,
  slots: readonly number[],
  places: readonly number[],
  settlement: Settlement,
): void {
  state.outOfMemoryBatches++
  if (batch.items.length === 1) {
    comeBack(state, settlement, slots[0], places[0], true, 'out_of_memory')
    return
  }
  reduceBudget(state, batch, slots)
  const left = slots.filter((slot, i) => {
    if (!isDeliveredTooOften(state, slot)) return true
    settlement.end(slot, places[i], 'failed', 'max_deliveries')
    return false
  })
  for (const slot of left) startWaiting(state, slot)
  const group = newGroup(state, 'half', batch.model, left)
  for (const half of halves(state, group)) if (half.live > 0) queueAndFit(state, half)
}

/** Half of what the batch was packed by: others of its channel may fail of the same old budget. */
function reduceBudget(state: State, batch: Batch, slots: readonly number[]): void {
  const { consumer } = batch
  if (consumer.gone || consumer.draining) return
  const { contract } = consumer
  let longest = 0
  for (const slot of slots) longest = Math.max(longest, state.items.length.get(slot))
  const least = roundUp(longest, Math.max(contract.roundTo, state.config.roundTo))
  const half = Math.max(Math.floor(batch.tokens / 2), Math.min(least, batch.tokens))
  consumer.reducedBatchesLeft = REDUCED_BATCHES
  if (half < consumer.cls.contract.tokens) setEffectiveTokens(state, consumer, half)
}

/** A batch has gone to the consumer: after enough of them it has its whole budget again. */
export function noteReduced(state: State, consumer: Consumer): void {
  if (consumer.reducedBatchesLeft === 0 || --consumer.reducedBatchesLeft > 0) return
  setEffectiveTokens(state, consumer, consumer.contract.tokens)
}

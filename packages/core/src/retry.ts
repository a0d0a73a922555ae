// Items that come back after a while, as lane work: failed ones and nacked ones (S28).

import type { SettleReason } from './effects.js'
import { ITEM_RETRYING } from './items.js'
import type { Settlement } from './settle.js'
import { NS_PER_MS, type State } from './state.js'
import { TIMER_RETRY } from './timers.js'
import { count, queueItem, startWaiting } from './waiting.js'

const RETRY_DELAY_MAX_MS = 30_000

/** Brings an unleased item back after its delay, or ends it when its tries are used up. */
export function comeBack(
  state: State,
  settlement: Settlement,
  slot: number,
  index: number,
  failed: boolean,
  reason: SettleReason = 'max_attempts',
): void {
  const { items, config } = state
  if (failed) items.attempts.set(slot, Math.min(255, items.attempts.get(slot) + 1))
  if (items.attempts.get(slot) >= config.maxAttempts) {
    settlement.end(slot, index, 'failed', reason)
    return
  }
  if (isDeliveredTooOften(state, slot)) {
    settlement.end(slot, index, 'failed', 'max_deliveries')
    return
  }
  startWaiting(state, slot)
  const timer = state.timers.open(TIMER_RETRY, slot)
  state.timers.set(timer, state.now + delayNs(state, slot))
  items.state.set(slot, ITEM_RETRYING)
  items.next.set(slot, timer)
  items.returns.set(slot, Math.min(255, items.returns.get(slot) + 1))
  count(state.tiers.retrying, state, slot, 1)
}

/** What is given out again and again and never settles must end some day (S28). */
export function isDeliveredTooOften(state: State, slot: number): boolean {
  const { items, excused, config } = state
  const excusedOf = excused.size === 0 ? 0 : (excused.get(slot) ?? 0)
  return items.deliveries.get(slot) - excusedOf >= config.maxDeliveries
}

/**
 * A delivery under suspicion is the search's, not the item's: else a neighbour of a poison item could
 * run out of deliveries before the poison is found (S27). The search has a bound of its own.
 */
export function excuseDelivery(state: State, slot: number): void {
  state.excused.set(slot, (state.excused.get(slot) ?? 0) + 1)
}

function delayNs(state: State, slot: number): number {
  const delayMs = state.config.retryDelayMs * 2 ** state.items.returns.get(slot)
  return Math.min(delayMs, RETRY_DELAY_MAX_MS) * NS_PER_MS
}

export function onRetryDue(state: State, slot: number): void {
  state.timers.close(state.items.next.get(slot))
  count(state.tiers.retrying, state, slot, -1)
  queueItem(state, slot)
}

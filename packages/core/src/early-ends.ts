// Items that end without a consumer's word: cancelled, or past their deadline (S35).
//
// A leased one settles at once. Its batch goes on, and what the consumer says of it is dropped.

import { ITEM_ENDED, ITEM_FREE, ITEM_LEASED } from './items.js'
import type { Batch } from './lease-table.js'
import { pullOut } from './leases.js'
import { Settlement } from './settle.js'
import type { State } from './state.js'

export function endEarly(
  state: State,
  slots: Iterable<number>,
  status: 'cancelled' | 'expired',
): number {
  const { items } = state
  const waiting = new Settlement(state, null, null)
  const leased = new Map<Batch, Settlement>()
  let ended = 0
  for (const slot of slots) {
    const itemState = items.state.get(slot)
    if (itemState === ITEM_ENDED || itemState === ITEM_FREE) continue
    ended++
    let settlement = waiting
    let place = 0
    if (itemState === ITEM_LEASED) {
      const batch = state.leases.atRow(items.next.get(slot))
      place = items.previous.get(slot)
      settlement = leased.get(batch) ?? new Settlement(state, batch.consumer.id, batch.number)
      leased.set(batch, settlement)
    }
    pullOut(state, slot)
    settlement.end(slot, place, status, status)
  }
  // The oldest held item may have gone: when the gate opens for age is looked at anew (S10).
  if (ended > 0) state.timers.clear(state.gate.timer)
  waiting.tell()
  for (const settlement of leased.values()) settlement.tell()
  return ended
}

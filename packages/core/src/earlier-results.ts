// Results of an earlier life of the broker (S26): its leases are gone, but a durable item that is still
// unsettled is the same item. Wherever it is now, on disk, in the window or leased anew, it ends here.

import { endOnDisk } from './disk-ends.js'
import type { CoreEvent, EarlierResult } from './events.js'
import { ITEM_ENDED, ITEM_FREE } from './items.js'
import { pullOut, tellLate } from './leases.js'
import { Settlement } from './settle.js'
import type { State } from './state.js'

type Event = Extract<CoreEvent, { type: 'earlierResults' }>

export function onEarlierResults(state: State, event: Event): void {
  const { consumer, batch } = event
  const dropped = [...event.unknown]
  const settlement = new Settlement(state, consumer, batch)
  const slots = slotsOf(state, event.items)
  for (const item of event.items) {
    const slot = slots.get(item.sequence)
    if (slot !== undefined) {
      // Named twice, the first counts.
      slots.delete(item.sequence)
      pullOut(state, slot)
      settlement.end(slot, item.index, item.status)
    } else if (!endOnDisk(state, item, [item.sequence], [item.length], item.status))
      dropped.push(item.index)
  }
  settlement.tell()
  if (dropped.length > 0) tellLate(state, { consumer, batch }, dropped, false)
}

/** One pass over the item table serves them all: a restart is rare, and no index leads to a number. */
function slotsOf(state: State, wanted: readonly EarlierResult[]): Map<number, number> {
  const { items } = state
  const sequences = new Set(wanted.map(({ sequence }) => sequence))
  const slots = new Map<number, number>()
  if (sequences.size === 0) return slots
  items.forEach((slot) => {
    const itemState = items.state.get(slot)
    if (itemState === ITEM_FREE || itemState === ITEM_ENDED) return
    const sequence = items.sequence.get(slot)
    if (items.durable.get(slot) === 1 && sequences.has(sequence)) slots.set(sequence, slot)
  })
  return slots
}

// What the next items of a submission will need, read before it is needed.
//
// An id's place in the index, a lane and the item at its end lie anywhere in memory: each is a cache miss,
// or several in a row. One item after the other they would be most of what an item costs among tens of
// thousands of lanes; in a loop that does nothing else, those of many items overlap.

import type { Cut } from './cut.js'
import type { Job } from './jobs.js'
import type { Shape } from './models.js'
import type { Queue } from './queue.js'
import { keyOfLength } from './shapes.js'
import type { State } from './state.js'

/** Few enough that what was read is in the cache still when its item comes. */
export const AHEAD_ITEMS = 32

export class LookAhead {
  /** Digests of the ids of these items. */
  readonly high = new Uint32Array(AHEAD_ITEMS)
  readonly low = new Uint32Array(AHEAD_ITEMS)
  /** Their shapes, where there is one already. */
  readonly shapes: (Shape | undefined)[] = new Array(AHEAD_ITEMS).fill(undefined)
  /** Where what was read goes: a read without a use would be left out by the compiler. */
  read = 0

  /** Moves `cut` over the items from `from` up to `to`. */
  look(state: State, job: Job, cut: Cut, from: number, to: number): void {
    const { idHash } = state
    const count = to - from
    for (let i = 0; i < count; i++) {
      cut.next(from + i)
      idHash.digest(cut.block.ids, cut.idFrom, cut.idTo)
      this.high[i] = idHash.high
      this.low[i] = idHash.low
      this.shapes[i] = state.models.get(cut.model)?.shapes.get(keyOfLength(state, cut.length))
    }
    let read = 0
    for (let i = 0; i < count; i++) read ^= job.ids.peek(this.high[i], this.low[i])
    for (let i = 0; i < count; i++) read ^= this.shapes[i]?.peek(state.items) ?? 0
    this.read = read
  }

  /** At the items that a batch takes from the queue. */
  lookAtQueue({ items }: State, queue: Queue, room: number): void {
    let slot = queue.head
    let read = 0
    for (let i = Math.min(room, AHEAD_ITEMS, queue.count); i > 0 && slot >= 0; i--) {
      read ^= items.length.get(slot)
      slot = items.next.get(slot)
    }
    this.read = read
  }
}

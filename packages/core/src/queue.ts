// First in, first out lists of items, linked through the item table's own columns (S1, S20).
//
// An item stands in at most one queue, so two columns serve them all and a queue costs no memory per
// item. Any item can be taken out in constant time: a late result withdraws its queued copy (S26).

import type { Items } from './items.js'

export class Queue {
  head = -1
  tail = -1
  count = 0
  tokens = 0

  push(items: Items, slot: number): void {
    items.next.set(slot, -1)
    items.previous.set(slot, this.tail)
    if (this.tail < 0) this.head = slot
    else items.next.set(this.tail, slot)
    this.tail = slot
    this.count++
    this.tokens += items.length.get(slot)
  }

  remove(items: Items, slot: number): void {
    const next = items.next.get(slot)
    const previous = items.previous.get(slot)
    if (previous < 0) this.head = next
    else items.next.set(previous, next)
    if (next < 0) this.tail = previous
    else items.previous.set(next, previous)
    this.count--
    this.tokens -= items.length.get(slot)
  }
}

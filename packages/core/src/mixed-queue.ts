// A job's items in a shape of several padded lengths: like leaves with like (S20).
//
// Each padded length has a queue of its own, in order of arrival, and a heap knows the oldest of their
// heads. An item may leave before older ones of other lengths until one of them waits that arrived
// more than overtakeLimit arrivals earlier: then that one leaves first.

import { Heap } from './heap.js'
import type { Items } from './items.js'
import type { LengthClasses } from './length-classes.js'
import { OrderedSet } from './ordered-set.js'
import { Queue } from './queue.js'

/** The items of one padded length. */
class Band extends Queue {
  constructor(
    readonly key: number,
    /** Its handle in the heap. */
    readonly row: number,
  ) {
    super()
  }
}

export class MixedQueue {
  count = 0
  private readonly byKey = new Map<number, Band>()
  private readonly keys = new OrderedSet()
  private readonly rows: Band[] = []
  private readonly freeRows: number[] = []
  /** Bands by arrival of their heads. */
  private readonly oldest = new Heap()
  private arrivals = 0

  constructor(
    private readonly classes: LengthClasses,
    private readonly overtakeLimit: number,
  ) {}

  /** The oldest item, or -1. */
  get head(): number {
    const row = this.oldest.top()
    return row < 0 ? -1 : this.rows[row].head
  }

  push(items: Items, slot: number): void {
    const key = this.classes.paddedKey(items.length.get(slot))
    const band = this.byKey.get(key) ?? this.open(key)
    items.arrival.set(slot, this.arrivals++)
    band.push(items, slot)
    this.count++
    if (band.count === 1) this.order(items, band)
  }

  remove(items: Items, slot: number): void {
    const band = this.byKey.get(this.classes.paddedKey(items.length.get(slot)))!
    const wasHead = band.head === slot
    band.remove(items, slot)
    this.count--
    if (band.count === 0) this.close(band)
    else if (wasHead) this.order(items, band)
  }

  /** The item that goes best with a batch padded to `key`: as long, else the next shorter or longer. */
  nearest(items: Items, key: number): number {
    const { head } = this
    const atMost = this.keys.previous(key)
    const best = this.byKey.get(atMost >= 0 ? atMost : this.keys.next(key + 1))!.head
    const overtaken = this.arrivalOf(items, best) - this.arrivalOf(items, head)
    return overtaken > this.overtakeLimit ? head : best
  }

  private order(items: Items, band: Band): void {
    this.oldest.set(band.row, this.arrivalOf(items, band.head), 0)
  }

  /** Arrivals are kept in 32 bits; what waits is never 2^32 arrivals apart. */
  private arrivalOf(items: Items, slot: number): number {
    return this.arrivals - ((this.arrivals - items.arrival.get(slot)) >>> 0)
  }

  private open(key: number): Band {
    const row = this.freeRows.pop() ?? this.rows.length
    const band = new Band(key, row)
    this.rows[row] = band
    this.byKey.set(key, band)
    this.keys.add(key)
    return band
  }

  private close(band: Band): void {
    this.oldest.remove(band.row)
    this.freeRows.push(band.row)
    this.byKey.delete(band.key)
    this.keys.remove(band.key)
  }
}

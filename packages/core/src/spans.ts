// Spans: full batches that a shape makes up with the next shorter ones of its model (S13a, S13b).
//
// One index per contract class, brought up to date only when it is asked: an arrival and a batch note
// which shapes they changed. Then the spans that reach a changed shape are looked at again, and no
// others. A span covers at most sqrt(tokens / roundTo) shapes, since each is a step shorter than the
// one before and a full count of it holds that many: what is paid for an arrival is bounded by the
// contract, whatever the number of lanes, items or consumers (S14).
//
// Of the spans that a need allows, the one that leaves is least padded for the time since its first shape
// was last served (rankOf). With the least padded alone, rare lengths stand until the end and take the
// room that common ones would be chosen from.

import type { ContractClass } from './contracts.js'
import { Heap } from './heap.js'
import type { Shape } from './models.js'
import { OrderedSet } from './ordered-set.js'

/** How much a consumer needs work: its channel holds a batch, is empty, nothing is in flight either. */
export type Need = -1 | 0 | 1 | 2
/** No span is good enough. */
export const NO_NEED: Need = -1
export const MOST_NEED: Need = 2

export class Spans {
  /** Keys of shapes whose queue changed since the spans were looked at. */
  private readonly changed = new OrderedSet()
  /** By the least need that allows them: rows of shapes with a span, the best first. */
  private readonly byNeed: readonly Heap[] = [new Heap(), new Heap(), new Heap()]
  /** By need: the most padding; each at least that of the need before. */
  private readonly most: readonly number[]

  constructor(
    private readonly cls: ContractClass,
    spanWaste: readonly number[],
    /** What items are rounded up to. */
    private readonly roundTo: number,
    /** An operator's activation threshold holds staged items back: then only lanes begin a span. */
    private readonly lanesOnly: boolean,
  ) {
    const last = spanWaste.length - 1
    const at = (need: number) => spanWaste[Math.min(need, last)]
    this.most = [at(0), at(1), at(2)]
  }

  /** The shape's queue changed, or whether it is a lane. */
  note(key: number): void {
    if (this.cls.holds(key)) this.changed.add(key)
  }

  /** The shape is dropped: its row may be another's soon. */
  forget(shape: Shape): void {
    for (const heap of this.byNeed) heap.remove(shape.row)
  }

  /** Key of the shape that begins the best span that this need allows, or -1. */
  readyFor(need: Need): number {
    this.update()
    let best = -1
    let bestRank = Number.POSITIVE_INFINITY
    for (let level = 0; level <= need; level++) {
      const heap = this.byNeed[level]
      const top = heap.top()
      if (top < 0 || heap.first(top) >= bestRank) continue
      bestRank = heap.first(top)
      best = heap.second(top)
    }
    return best
  }

  isReady(shape: Shape, need: Need): boolean {
    this.update()
    for (let level = 0; level <= need; level++) if (this.byNeed[level].has(shape.row)) return true
    return false
  }

  /** As for the most need, or the least padded full count there is, or -1 (S13b). */
  leastPadded(): number {
    const key = this.readyFor(MOST_NEED)
    return key >= 0 ? key : this.leastOfAll()
  }

  private update(): void {
    if (this.changed.isEmpty()) return
    const { model } = this.cls
    const round = ++model.spanRounds
    for (let key = this.changed.next(0); key >= 0; key = this.changed.next(key + 1)) {
      const shape = model.shapes.get(key)
      if (shape !== undefined) this.look(shape, round)
      this.lookAbove(model.shapes.get(model.queued.next(key + 1)) ?? null, round)
    }
    this.changed.clear()
  }

  /** Looks at the longer shapes whose span reaches down to the changed one, from the next on. */
  private lookAbove(next: Shape | null, round: number): void {
    let between = 0
    for (let shape = next; shape !== null && this.cls.holds(shape.key); shape = shape.longer) {
      between += shape.queue.count
      // Those longer still have more items between and no greater full count: none of them reaches.
      if (between >= this.cls.fullCount(shape.key)) return
      this.look(shape, round)
    }
  }

  private look(shape: Shape, round: number): void {
    if (shape.spanRound === round) return
    shape.spanRound = round
    const waste = this.wasteOf(shape, this.most[MOST_NEED])
    const level = this.most.findIndex((most) => waste <= most)
    for (let need = 0; need < this.byNeed.length; need++) {
      if (need === level) this.byNeed[need].set(shape.row, this.rankOf(shape, waste), shape.key)
      else this.byNeed[need].remove(shape.row)
    }
  }

  /**
   * All padding of the span, what rounding makes of its longest items with it (half a step on average),
   * over the root of the batches that have left since the shape was served: what pads little goes at
   * once, what pads much when it has waited long. That splits the queue between common lengths and rare
   * ones so that all of it pads least (docs/scheduling-study.md). As of the last look: a span whose
   * shapes get no item keeps its rank.
   */
  private rankOf({ model, servedAt, paddedLength }: Shape, waste: number): number {
    const passed = model.batches - servedAt + 1
    return (waste + this.roundTo / (2 * paddedLength)) / Math.sqrt(Math.max(1, passed))
  }

  /** The padding that the span of a shape adds, or Infinity when it has none of at most `most`. */
  private wasteOf(shape: Shape, most: number): number {
    const { queue, paddedLength } = shape
    const count = this.cls.fullCount(shape.key)
    if (queue.count === 0 || queue.count >= count) return Number.POSITIVE_INFINITY
    if (this.lanesOnly && !shape.active) return Number.POSITIVE_INFINITY
    const whole = count * paddedLength
    let missing = count - queue.count
    let added = 0
    for (let from = shape.shorter; missing > 0; from = from.shorter) {
      if (from === null) return Number.POSITIVE_INFINITY
      const taken = Math.min(missing, from.queue.count)
      added += taken * (paddedLength - from.paddedLength)
      if (added / whole > most) return Number.POSITIVE_INFINITY
      missing -= taken
    }
    return added / whole
  }

  /**
   * Where no span is ready for the most need, few items wait: fewer than a full batch in each range of
   * lengths that such a span would cover. So looking at all costs no more than the batch that leaves.
   */
  private leastOfAll(): number {
    const { model, longestHeldKey } = this.cls
    let least = Number.POSITIVE_INFINITY
    let best = -1
    const longest = model.shapes.get(model.queued.previous(longestHeldKey)) ?? null
    for (let shape = longest; shape !== null; shape = shape.shorter) {
      const waste = this.wasteOf(shape, least)
      if (waste >= least) continue
      least = waste
      best = shape.key
    }
    return best
  }
}

// Spans: full batches that a shape makes up with the next shorter ones of its model (S13a, S13b).
//
// One index per contract class, brought up to date only when it is asked: an arrival and a batch note
// which shapes they changed. Then the spans that reach a changed shape are looked at again, and no
// others. A span covers at most sqrt(tokens / roundTo) shapes, since each is a step shorter than the
// one before and a full count of it holds that many: what is paid for an arrival is bounded by the
// contract, whatever the number of lanes, items or consumers (S14).

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
  /** Rows of shapes with a span that is ready for the most need, least padded first. */
  private readonly byWaste = new Heap()
  /** By need: the most padding; each at least that of the need before. */
  private readonly most: readonly number[]

  constructor(
    private readonly cls: ContractClass,
    spanWaste: readonly number[],
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
    this.byWaste.remove(shape.row)
  }

  /** Key of the shape that begins the least padded span, if that is ready for this need, or -1. */
  readyFor(need: Need): number {
    this.update()
    const top = this.byWaste.top()
    return top >= 0 && this.allows(need, top) ? this.byWaste.second(top) : -1
  }

  isReady(shape: Shape, need: Need): boolean {
    this.update()
    return this.byWaste.has(shape.row) && this.allows(need, shape.row)
  }

  /** Key of the shape with the least padded full count there is, or -1 (S13b). */
  leastPadded(): number {
    this.update()
    const top = this.byWaste.top()
    return top >= 0 ? this.byWaste.second(top) : this.leastOfAll()
  }

  private allows(need: Need, row: number): boolean {
    return need >= 0 && this.byWaste.first(row) <= this.most[need]
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
    if (waste <= this.most[MOST_NEED]) this.byWaste.set(shape.row, waste, shape.key)
    else this.byWaste.remove(shape.row)
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

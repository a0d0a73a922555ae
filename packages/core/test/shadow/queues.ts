// The shadow's opinion of queues: which shape an item waits in, the overtaking bound (S20) and the
// turns of jobs (S20a). Items of the disk tier, whose jobs take turns by loads, are not its business.
// It shares no code with the core.

import type { CoreConfig } from '../../src/core-config.js'

/** What is asked of an item; the shadow's own type has more. */
export interface QueuedItem {
  readonly id: string
  readonly model: number
  readonly length: number
  readonly job: number
}

interface Arrival {
  readonly number: number
  /** It came by submission: what comes back arrives in an order that only the core knows. */
  readonly isFirst: boolean
}

/** Two jobs that both have items in a shape: what the one got more than the other, by weight. */
interface Race {
  difference: number
  least: number
  most: number
}

/** A shape: items by job, in no order, and the races of its jobs. */
class ShadowShape {
  readonly jobs = new Map<number, Map<QueuedItem, Arrival>>()
  readonly arrivals = new Map<number, number>()
  readonly races = new Map<string, Race>()
}

export class ShadowQueues {
  private readonly shapes = new Map<number, ShadowShape>()
  /** By length: asked for every item after every step. */
  private readonly paddedLengths: number[] = []
  private readonly weights = new Map<number, number>([[0, 1]])
  private held = new Set<number>()
  /** Jobs that were on hold: their items have arrived anew. */
  private readonly onceHeld = new Set<number>()

  constructor(private readonly config: CoreConfig) {}

  /** The padded length of the shape: the edge of its class. */
  paddedLength(length: number): number {
    this.paddedLengths[length] ??= this.classEdge(length)
    return this.paddedLengths[length]
  }

  private classEdge(length: number): number {
    const { roundTo, lengthClasses } = this.config
    const padded = Math.ceil(length / roundTo) * roundTo
    const edge = lengthClasses.find((one) => Math.ceil(one / roundTo) * roundTo >= padded)
    return edge === undefined ? padded : Math.ceil(edge / roundTo) * roundTo
  }

  /** The broker began anew. */
  clear(): void {
    this.shapes.clear()
    this.held.clear()
    this.onceHeld.clear()
  }

  createJob(job: number, weight: number): void {
    this.weights.set(job, weight)
  }

  setHeld(held: Set<number>): void {
    for (const job of [...held, ...this.held]) {
      if (held.has(job) === this.held.has(job)) continue
      this.onceHeld.add(job)
      for (const shape of this.shapes.values()) this.endRaces(shape, job)
    }
    this.held = held
  }

  arrive(item: QueuedItem, isFirst: boolean): void {
    const shape = this.shapeOf(item)
    const number = shape.arrivals.get(item.job) ?? 0
    shape.arrivals.set(item.job, number + 1)
    const items = shape.jobs.get(item.job) ?? new Map<QueuedItem, Arrival>()
    shape.jobs.set(item.job, items.set(item, { number, isFirst }))
  }

  /** It waits in its shape's queue no more, and no batch took it from there. */
  withdraw(item: QueuedItem): void {
    const shape = this.shapeOf(item)
    const items = shape.jobs.get(item.job)
    if (!items?.delete(item) || items.size > 0) return
    shape.jobs.delete(item.job)
    this.endRaces(shape, item.job)
  }

  /** A due batch takes the item out of the turns: races begin anew behind it (S16). */
  serveDue(item: QueuedItem): void {
    this.withdraw(item)
    this.shapeOf(item).races.clear()
  }

  /** A batch takes the item from its shape's queue; throws where that breaks S20 or S20a. */
  serve(item: QueuedItem): void {
    const shape = this.shapeOf(item)
    this.checkOvertaking(shape, item)
    this.run(shape, item)
    this.withdraw(item)
  }

  private shapeOf(item: QueuedItem): ShadowShape {
    const key = item.model * 2 ** 32 + this.paddedLength(item.length)
    const shape = this.shapes.get(key) ?? new ShadowShape()
    this.shapes.set(key, shape)
    return shape
  }

  /** S20: arrival order within a padded length, and no more than overtakeLimit across them. */
  private checkOvertaking(shape: ShadowShape, item: QueuedItem): void {
    const { roundTo, overtakeLimit } = this.config
    const items = shape.jobs.get(item.job)
    const mine = items?.get(item)
    if (mine === undefined) throw new Error(`S1: ${item.id} left a queue where it does not stand`)
    if (!mine.isFirst || this.onceHeld.has(item.job)) return
    const padded = (length: number) => Math.ceil(length / roundTo)
    for (const [other, { number, isFirst }] of items!) {
      if (!isFirst || number >= mine.number) continue
      const like = padded(other.length) === padded(item.length)
      if (like) throw new Error(`S20: ${item.id} overtook ${other.id} of like length`)
      const overtaken = mine.number - number
      if (overtaken > overtakeLimit)
        throw new Error(`S20: ${item.id} overtook ${other.id}, ${overtaken} arrivals older`)
    }
  }

  /** S20a: over any time in which two jobs have items here, they get tokens by their weights. */
  private run(shape: ShadowShape, item: QueuedItem): void {
    const longest = this.paddedLength(item.length)
    const weight = this.weights.get(item.job)!
    for (const other of shape.jobs.keys()) {
      if (other === item.job || this.held.has(other)) continue
      const isSmaller = item.job < other
      const name = isSmaller ? `${item.job}/${other}` : `${other}/${item.job}`
      const race = shape.races.get(name) ?? { difference: 0, least: 0, most: 0 }
      shape.races.set(name, race)
      race.difference += ((isSmaller ? 1 : -1) * item.length) / weight
      race.least = Math.min(race.least, race.difference)
      race.most = Math.max(race.most, race.difference)
      const allowed = longest * (1 + 1 / weight + 1 / this.weights.get(other)!)
      if (race.most - race.least > allowed + 1e-9)
        throw new Error(`S20a: jobs ${name} differ by ${race.most - race.least} > ${allowed}`)
    }
  }

  private endRaces(shape: ShadowShape, job: number): void {
    for (const name of shape.races.keys()) {
      if (name.split('/').includes(String(job))) shape.races.delete(name)
    }
  }
}

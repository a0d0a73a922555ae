// The shadow's opinion of who is passed over for too long (I7): items without a wait, by the batches of
// their model that took nothing of their shape and tier. It shares no code with the core.

import type { CoreConfig } from '../../src/core-config.js'

interface WaitingItem {
  readonly id: string
  readonly model: number
  readonly length: number
  readonly durable: boolean
}

export class ShadowPassedOver {
  /** Batches of a model so far. */
  private readonly batches = new Map<number, number>()
  /** How many there were when an item began to wait. */
  private readonly since = new WeakMap<WaitingItem, number>()
  /** How many there were when a shape's tier was last served. */
  private readonly servedAt = new Map<string, number>()
  /** Those in which items of a model have waited. */
  private readonly tiers = new Map<number, Set<string>>()

  constructor(
    private readonly config: CoreConfig,
    private readonly shapeOf: (item: WaitingItem) => string,
  ) {}

  clear(): void {
    this.batches.clear()
    this.servedAt.clear()
    this.tiers.clear()
  }

  wait(item: WaitingItem): void {
    this.since.set(item, this.batchesOf(item.model))
    const tiers = this.tiers.get(item.model) ?? new Set()
    this.tiers.set(item.model, tiers.add(this.tierOf(item)))
  }

  /** A batch of the model leaves with these. */
  served(model: number, items: readonly WaitingItem[]): void {
    const batches = this.batchesOf(model) + 1
    this.batches.set(model, batches)
    for (const item of items) this.servedAt.set(this.tierOf(item), batches)
  }

  /**
   * One of `left` that was passed over for more batches than allowed; none whose shape and tier a batch of
   * `taken` serves. One tier of a shape comes forward after a batch, so as many more are allowed as there
   * are.
   */
  find<T extends WaitingItem>(left: readonly T[], taken: readonly T[]): T | null {
    const { starveBatches } = this.config
    if (starveBatches === 0) return null
    const served = new Set(taken.map((item) => this.tierOf(item)))
    const isTooMany = (item: T) =>
      this.passedOver(item) > starveBatches + this.tiers.get(item.model)!.size
    return left.find((item) => isTooMany(item) && !served.has(this.tierOf(item))) ?? null
  }

  private passedOver(item: WaitingItem): number {
    const since = this.since.get(item) ?? 0
    const servedAt = this.servedAt.get(this.tierOf(item)) ?? 0
    return this.batchesOf(item.model) - Math.max(since, servedAt)
  }

  private tierOf(item: WaitingItem): string {
    return `${this.shapeOf(item)}:${item.durable}`
  }

  private batchesOf(model: number): number {
    return this.batches.get(model) ?? 0
  }
}

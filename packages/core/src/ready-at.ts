// When lanes are ready: thresholds per contract class (S13, S18).

/** A lane is ready when it holds so many items, or so many tokens. */
export class ReadyAt {
  constructor(
    readonly count: number,
    /** Infinite where only items count. */
    readonly tokens: number,
  ) {}

  /** Full batches in a lane: 0 = not ready. */
  batches(count: number, tokens: number): number {
    return Math.max(Math.floor(count / this.count), Math.floor(tokens / this.tokens))
  }
}

/** Per class of a model; null where the class never serves the lane. */
export type ReadyAtList = readonly (ReadyAt | null)[]

/** One list for all shapes that are ready at the same counts, while the model's classes are the same. */
export class ReadyAtLists {
  private readonly byCounts = new Map<string, ReadyAtList>()
  private version = -1

  shared(list: ReadyAtList, version: number): ReadyAtList {
    // Where tokens count, too, each length has thresholds of its own.
    if (list.some((at) => at !== null && at.tokens < Number.POSITIVE_INFINITY)) return list
    if (this.version !== version) this.byCounts.clear()
    this.version = version
    const counts = list.map((at) => at?.count ?? 0).join()
    const known = this.byCounts.get(counts)
    if (known === undefined) this.byCounts.set(counts, list)
    return known ?? list
  }
}

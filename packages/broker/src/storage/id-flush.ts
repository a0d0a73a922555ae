// Makes a sorted run of a job's recent ids, a piece a transaction, so that no transaction takes much longer
// than the others. The ids stay in memory, and their pages of level 0 in the file, until all of the run
// is committed: a broker that dies before begins it anew. The run is numbered by the first of its pages
// of level 0, so what was written of it is written over then.
import type { Table } from './environment.js'
import { PAGES_PER_STEP } from './id-merge.js'
import { ENTRY_WORDS, encodePage, Filter, pagesFor, type RecentIds } from './id-run.js'
import { gathered, type PageOrder, pageOrder } from './id-sort.js'
import { idPageKey, idRunKey } from './layout.js'

const REMOVALS_PER_STEP = 256

export interface FlushTables {
  readonly ids: Table
  readonly filters: Table
}

export class RunFlush {
  readonly run: number
  readonly filter: Filter
  readonly #entries: Uint32Array
  readonly #order: PageOrder
  #page = 0
  #removed = 0

  /**
   * @param count the first so many of the ids.
   * @param level0 the runs of level 0 in which those stand, oldest first.
   */
  constructor(
    readonly tables: FlushTables,
    readonly job: number,
    readonly ids: RecentIds,
    readonly count: number,
    readonly level0: readonly number[],
  ) {
    this.filter = Filter.for(count, pagesFor(count))
    this.#entries = ids.entriesFrom(0).subarray(0, count * ENTRY_WORDS)
    this.#order = pageOrder(this.#entries, this.filter.pages, 0, this.filter.pages)
    this.run = level0[0]
  }

  /** All of the run is in the index, as of the transaction of the last step. */
  get isWritten(): boolean {
    return this.#page === this.filter.pages
  }

  get isDone(): boolean {
    return this.isWritten && this.#removed === this.level0.length
  }

  /** Within a transaction. */
  step(): void {
    if (!this.isWritten) this.#writePages()
    // The first page of level 0 goes with the last one of the run, or the run could be begun twice.
    if (this.isWritten) this.#removePages()
  }

  #writePages(): void {
    const { pages } = this.filter
    const end = Math.min(pages, this.#page + PAGES_PER_STEP)
    const { order, starts } = this.#order
    const entries = gathered(this.#entries, order, starts[this.#page], starts[end])
    this.filter.addAll(entries)
    putPages(this.tables.ids, entries, starts.subarray(this.#page, end + 1), (page) =>
      idPageKey(this.job, 1, this.run, this.#page + page),
    )
    this.#page = end
    if (this.isWritten)
      this.tables.filters.put(idRunKey(this.job, 1, this.run), this.filter.encode())
  }

  #removePages(): void {
    const end = Math.min(this.level0.length, this.#removed + REMOVALS_PER_STEP)
    for (; this.#removed < end; this.#removed++)
      this.tables.ids.remove(idPageKey(this.job, 0, this.level0[this.#removed], 0))
  }
}

/** @param starts of each page, counted in entries, and the end of the last; only how they differ counts. */
export function putPages(
  ids: Table,
  entries: Uint32Array,
  starts: Uint32Array,
  keyOf: (page: number) => Buffer,
): void {
  const wordOf = (page: number) => (starts[page] - starts[0]) * ENTRY_WORDS
  for (let page = 0; page < starts.length - 1; page++)
    ids.put(keyOf(page), encodePage(entries.subarray(wordOf(page), wordOf(page + 1))))
}

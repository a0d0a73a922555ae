// Makes a sorted run of a job's recent ids, a piece a transaction, so that no transaction takes much longer
// than the others. The ids stay in memory, and their pages of level 0 in the file, until all of the run
// is committed: a broker that dies before begins it anew. The run is numbered by the first of its pages
// of level 0, so what was written of it is written over then.
import type { Table } from './environment.js'
import { PAGES_PER_STEP } from './id-merge.js'
import {
  byPage,
  ENTRY_WORDS,
  encodePage,
  Filter,
  pageOf,
  pagesFor,
  type RecentIds,
  sorted,
} from './id-run.js'
import { idPageKey, idRunKey } from './layout.js'

const REMOVALS_PER_STEP = 256

export interface FlushTables {
  readonly ids: Table
  readonly filters: Table
}

export class RunFlush {
  readonly run: number
  readonly filter: Filter
  /** By page. */
  readonly #entries: Uint32Array
  readonly #starts: Uint32Array
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
    const entries = ids.entriesFrom(0).subarray(0, count * ENTRY_WORDS)
    const { entries: ordered, starts } = byPage(entries, this.filter.pages)
    this.#entries = ordered
    this.#starts = starts
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
    const entries = sorted(this.#entries.subarray(this.#starts[this.#page], this.#starts[end]))
    this.filter.addAll(entries)
    putPages(this.tables.ids, entries, pages, this.#page, end, (page) =>
      idPageKey(this.job, 1, this.run, page),
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

/** Pages [from, to) of a run of so many pages; the entries are all of theirs, in order. */
export function putPages(
  ids: Table,
  entries: Uint32Array,
  pages: number,
  from: number,
  to: number,
  keyOf: (page: number) => Buffer,
): void {
  let begin = 0
  for (let page = from; page < to; page++) {
    let end = begin
    while (end < entries.length && pageOf(entries[end], pages) === page) end += ENTRY_WORDS
    ids.put(keyOf(page), encodePage(entries.subarray(begin, end)))
    begin = end
  }
}

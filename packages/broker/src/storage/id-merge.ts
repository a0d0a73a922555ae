// Makes one run of several, a few pages a transaction: until the last step the sources stay in use,
// and what was written of the new run is only in the way of the same merge begun anew.
import { putPages } from './id-flush.js'
import type { IdIndex, IdRun } from './id-index.js'
import { concatWords, ENTRY_WORDS, Filter, pageOf, pagesFor } from './id-run.js'
import { gathered, pageOrder } from './id-sort.js'
import { idPageKey, idRunKey } from './layout.js'

export const PAGES_PER_STEP = 8

export class RunMerge {
  readonly #filter: Filter
  readonly #level: number
  readonly #run: number
  #page = 0

  constructor(
    readonly index: IdIndex,
    readonly job: number,
    readonly sources: readonly IdRun[],
  ) {
    const entries = sources.reduce((sum, { filter }) => sum + filter.entries, 0)
    this.#filter = Filter.for(entries, pagesFor(entries))
    this.#level = sources[0].level + 1
    this.#run = Math.max(...sources.map(({ run }) => run))
  }

  /** The new run, when this was the last step. */
  step(): IdRun | null {
    const pages = this.#filter.pages
    const end = Math.min(pages, this.#page + PAGES_PER_STEP)
    const collected = this.#collect(this.#page, end)
    const { order, starts } = pageOrder(collected, pages, this.#page, end)
    const entries = gathered(collected, order, 0, order.length)
    this.#filter.addAll(entries)
    putPages(this.index.ids, entries, starts, (page) =>
      idPageKey(this.job, this.#level, this.#run, this.#page + page),
    )
    this.#page = end
    return this.#page < pages ? null : this.#finish()
  }

  /** Entries of all sources whose first word falls into pages [from, to) of the new run. */
  #collect(from: number, to: number): Uint32Array {
    const pages = this.#filter.pages
    const parts: Uint32Array[] = []
    for (const { level, run, filter } of this.sources) {
      // A word's page grows with the word, so the words between are in the pages between.
      const first = pageOf(Math.floor((from * 2 ** 32) / pages), filter.pages)
      const lastWord = Math.min(2 ** 32 - 1, Math.ceil((to * 2 ** 32) / pages))
      const last = pageOf(lastWord, filter.pages)
      for (let page = first; page <= last; page++) {
        const entries = this.index.readPage(idPageKey(this.job, level, run, page))
        const begin = firstAt(entries, (word) => pageOf(word, pages) >= from)
        const end = firstAt(entries, (word) => pageOf(word, pages) >= to)
        parts.push(entries.subarray(begin, end))
      }
    }
    return concatWords(parts)
  }

  #finish(): IdRun {
    const { ids, filters } = this.index
    for (const { level, run, filter } of this.sources) {
      filters.remove(idRunKey(this.job, level, run))
      for (let page = 0; page < filter.pages; page++)
        ids.remove(idPageKey(this.job, level, run, page))
    }
    filters.put(idRunKey(this.job, this.#level, this.#run), this.#filter.encode())
    return { level: this.#level, run: this.#run, filter: this.#filter }
  }
}

/** Index in words of the first entry of a sorted page for which it is so. */
function firstAt(entries: Uint32Array, isSo: (firstWord: number) => boolean): number {
  let low = 0
  let high = entries.length / ENTRY_WORDS
  while (low < high) {
    const middle = (low + high) >>> 1
    if (isSo(entries[middle * ENTRY_WORDS])) high = middle
    else low = middle + 1
  }
  return low * ENTRY_WORDS
}

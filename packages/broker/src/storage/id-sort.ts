// Entries of ids put in the order of a run. First words are parts of keyed digests, as likely here as there,
// so an entry's place is nearly known from its word alone: it goes there at once, and few have to be moved.
import { ENTRY_WORDS, PAGE_ENTRIES, pagesFor } from './id-run.js'

export interface PageOrder {
  /** Numbers of entries, page after page, and within a page nearly in order of their first words. */
  readonly order: Uint32Array
  /** For each page where it begins in `order`, and at last where all end. */
  readonly starts: Uint32Array
}

/** Of entries which all belong into the pages [from, to) of a run of so many. */
export function pageOrder(
  entries: Uint32Array,
  pages: number,
  from: number,
  to: number,
): PageOrder {
  const count = entries.length / ENTRY_WORDS
  // A group has one entry or so. Exact: division by a power of two, and pages are fewer than 2^21.
  const groupOf = (entry: number) =>
    Math.floor(((entries[entry * ENTRY_WORDS] * pages) / 2 ** 32 - from) * PAGE_ENTRIES)
  const next = new Uint32Array((to - from) * PAGE_ENTRIES + 1)
  for (let entry = 0; entry < count; entry++) next[groupOf(entry) + 1] += 1
  for (let group = 1; group < next.length; group++) next[group] += next[group - 1]
  const starts = new Uint32Array(to - from + 1)
  for (let page = 0; page < starts.length; page++) starts[page] = next[page * PAGE_ENTRIES]
  const order = new Uint32Array(count)
  for (let entry = 0; entry < count; entry++) order[next[groupOf(entry)]++] = entry
  return { order, starts }
}

/** The entries with the numbers in `order` from `begin` to `end`, in order of their first words. */
export function gathered(
  entries: Uint32Array,
  order: Uint32Array,
  begin: number,
  end: number,
): Uint32Array {
  const result = new Uint32Array((end - begin) * ENTRY_WORDS)
  for (let i = begin, to = 0; i < end; i++, to += ENTRY_WORDS) {
    const from = order[i] * ENTRY_WORDS
    for (let word = 0; word < ENTRY_WORDS; word++) result[to + word] = entries[from + word]
    if (to > 0 && result[to - ENTRY_WORDS] > result[to]) moveBack(result, to)
  }
  return result
}

/** The entry to where it belongs among those before it, which are in order. */
function moveBack(entries: Uint32Array, from: number): void {
  for (let at = from; at > 0 && entries[at - ENTRY_WORDS] > entries[at]; at -= ENTRY_WORDS)
    for (let word = at; word < at + ENTRY_WORDS; word++) {
      const moved = entries[word]
      entries[word] = entries[word - ENTRY_WORDS]
      entries[word - ENTRY_WORDS] = moved
    }
}

/** All of the entries in order of their first words. */
export function sorted(entries: Uint32Array): Uint32Array {
  const count = entries.length / ENTRY_WORDS
  const pages = pagesFor(count)
  return gathered(entries, pageOrder(entries, pages, 0, pages).order, 0, count)
}

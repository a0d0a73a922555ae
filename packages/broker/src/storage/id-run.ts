// Sets of ids: those of late appends in a hash table in memory, older ones in sorted runs on disk.
//
// An entry is seven u32: the id's digest (four), the body's digest, the sequence (low, high). A run is
// cut into pages by the digest's first word, so that an id's page is known without a search, and has
// a Bloom filter, so that an id that is not in it is not looked for.
//
// Little-endian. A page: u32 crc32 of all that follows it, u32 entries, the entries in order of the
// first word (of level 0: in order of arrival). A filter: u32 crc32 of all that follows it, u32
// entries of the run, u32 its pages, u32 zero, then the bits in u32 words.
import { checksum } from './checksum.js'

export const ENTRY_WORDS = 7
const PAGE_HEADER_BYTES = 8
export const PAGE_ENTRIES = 512
const FILTER_HEADER_BYTES = 16
/** Of runs that are written from now on; a filter is read whatever its length. One id in 1,400 passes. */
const FILTER_BITS_PER_ENTRY = 16
const FILTER_PROBES = 7

export const pagesFor = (entries: number): number => Math.max(1, Math.ceil(entries / PAGE_ENTRIES))

/** The page of a run of so many pages in which the digest's entry would stand. */
export const pageOf = (firstWord: number, pages: number): number =>
  Math.floor((firstWord * pages) / 2 ** 32)

export function encodePage(entries: Uint32Array): Buffer {
  const page = Buffer.allocUnsafe(PAGE_HEADER_BYTES + entries.byteLength)
  page.writeUInt32LE(entries.length / ENTRY_WORDS, 4)
  page.set(
    new Uint8Array(entries.buffer, entries.byteOffset, entries.byteLength),
    PAGE_HEADER_BYTES,
  )
  page.writeUInt32LE(checksum(page.subarray(4)), 0)
  return page
}

/** null: damaged. The entries are a view of the page, or a copy where it is not aligned. */
export function decodePage(page: Buffer): Uint32Array | null {
  if (page.byteLength < PAGE_HEADER_BYTES) return null
  if (page.readUInt32LE(0) !== checksum(page.subarray(4))) return null
  const words = page.readUInt32LE(4) * ENTRY_WORDS
  if (page.byteLength !== PAGE_HEADER_BYTES + 4 * words) return null
  const at = page.byteOffset + PAGE_HEADER_BYTES
  if (at % 4 === 0) return new Uint32Array(page.buffer, at, words)
  return new Uint32Array(new Uint8Array(page.subarray(PAGE_HEADER_BYTES)).buffer)
}

/** Index of the entry with this digest in a sorted page's entries, in words, or -1. */
export function findInPage(entries: Uint32Array, digest: Uint32Array): number {
  let low = 0
  let high = entries.length / ENTRY_WORDS
  while (low < high) {
    const middle = (low + high) >>> 1
    if (entries[middle * ENTRY_WORDS] < digest[0]) low = middle + 1
    else high = middle
  }
  for (let at = low * ENTRY_WORDS; at < entries.length && entries[at] === digest[0]; ) {
    if (isSame(entries, at, digest)) return at
    at += ENTRY_WORDS
  }
  return -1
}

const isSame = (entries: Uint32Array, at: number, digest: Uint32Array) =>
  entries[at] === digest[0] &&
  entries[at + 1] === digest[1] &&
  entries[at + 2] === digest[2] &&
  entries[at + 3] === digest[3]

export function concatWords(parts: readonly Uint32Array[]): Uint32Array {
  if (parts.length === 1) return parts[0]
  const all = new Uint32Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    all.set(part, at)
    at += part.length
  }
  return all
}

export class Filter {
  private constructor(
    readonly entries: number,
    readonly pages: number,
    private readonly words: Uint32Array,
  ) {}

  static for(entries: number, pages: number): Filter {
    const bits = Math.max(32, entries * FILTER_BITS_PER_ENTRY)
    return new Filter(entries, pages, new Uint32Array(Math.ceil(bits / 32)))
  }

  /** For a run whose filter was damaged: every id may be in it. */
  static open(pages: number): Filter {
    return new Filter(pages * PAGE_ENTRIES, pages, Uint32Array.of(0xffffffff))
  }

  addAll(entries: Uint32Array): void {
    const bits = this.words.length * 32
    for (let at = 0; at < entries.length; at += ENTRY_WORDS) {
      let hash = entries[at + 1]
      const step = entries[at + 2] | 1
      for (let probe = 0; probe < FILTER_PROBES; probe++) {
        const bit = (hash >>> 0) % bits
        this.words[bit >>> 5] |= 1 << (bit & 31)
        hash = (hash + step) | 0
      }
    }
  }

  mayHold(digest: Uint32Array): boolean {
    const bits = this.words.length * 32
    let hash = digest[1]
    const step = digest[2] | 1
    for (let probe = 0; probe < FILTER_PROBES; probe++) {
      const bit = (hash >>> 0) % bits
      if ((this.words[bit >>> 5] & (1 << (bit & 31))) === 0) return false
      hash = (hash + step) | 0
    }
    return true
  }

  encode(): Buffer {
    const bytes = Buffer.alloc(FILTER_HEADER_BYTES + this.words.byteLength)
    bytes.writeUInt32LE(this.entries, 4)
    bytes.writeUInt32LE(this.pages, 8)
    bytes.set(new Uint8Array(this.words.buffer), FILTER_HEADER_BYTES)
    bytes.writeUInt32LE(checksum(bytes.subarray(4)), 0)
    return bytes
  }

  /** null: damaged. */
  static decode(bytes: Buffer): Filter | null {
    if (bytes.byteLength <= FILTER_HEADER_BYTES) return null
    if (bytes.readUInt32LE(0) !== checksum(bytes.subarray(4))) return null
    const words = new Uint32Array(new Uint8Array(bytes.subarray(FILTER_HEADER_BYTES)).buffer)
    return new Filter(bytes.readUInt32LE(4), bytes.readUInt32LE(8), words)
  }
}

/** The ids of late appends of one job: a hash table with its entries beside it. */
export class RecentIds {
  #entries: Uint32Array
  /** Number of the entry. At most half full. */
  #slots: Int32Array
  /** Of each slot a byte of the digest, or 0: an id that is not there is mostly told by it alone. */
  #tags: Uint8Array
  count = 0

  /** @param room for so many, a power of two, before it has to grow. */
  constructor(room = 64) {
    this.#entries = new Uint32Array(room * ENTRY_WORDS)
    this.#slots = new Int32Array(2 * room)
    this.#tags = new Uint8Array(2 * room)
  }

  /** Entries that fit before it grows. */
  get room(): number {
    return this.#slots.length / 2
  }

  /** Body digest of the id, or -1. */
  body(digest: Uint32Array): number {
    const at = this.#find(digest)
    return at < 0 ? -1 : this.#entries[at + 4]
  }

  /** Sequence of the item with the id, or -1. */
  sequence(digest: Uint32Array): number {
    const at = this.#find(digest)
    return at < 0 ? -1 : this.#entries[at + 5] + this.#entries[at + 6] * 2 ** 32
  }

  #find(digest: Uint32Array): number {
    const mask = this.#slots.length - 1
    const tag = tagOf(digest[2])
    for (let slot = digest[3] & mask; this.#tags[slot] !== 0; slot = (slot + 1) & mask) {
      if (this.#tags[slot] !== tag) continue
      const at = this.#slots[slot] * ENTRY_WORDS
      if (isSame(this.#entries, at, digest)) return at
    }
    return -1
  }

  add(digest: Uint32Array, body: number, sequence: number): void {
    this.#growTo(this.count + 1)
    const at = this.count * ENTRY_WORDS
    const entries = this.#entries
    entries[at] = digest[0]
    entries[at + 1] = digest[1]
    entries[at + 2] = digest[2]
    entries[at + 3] = digest[3]
    entries[at + 4] = body
    entries[at + 5] = sequence % 2 ** 32
    entries[at + 6] = Math.floor(sequence / 2 ** 32)
    this.#place(this.count)
    this.count += 1
  }

  addAll(entries: Uint32Array): void {
    const count = this.count + entries.length / ENTRY_WORDS
    this.#growTo(count)
    this.#entries.set(entries, this.count * ENTRY_WORDS)
    for (; this.count < count; this.count++) this.#place(this.count)
  }

  /** The entries from the given one on: a view, for what was added does not change. */
  entriesFrom(first: number): Uint32Array {
    return this.#entries.subarray(first * ENTRY_WORDS, this.count * ENTRY_WORDS)
  }

  #place(entry: number): void {
    const at = entry * ENTRY_WORDS
    const mask = this.#slots.length - 1
    let slot = this.#entries[at + 3] & mask
    while (this.#tags[slot] !== 0) slot = (slot + 1) & mask
    this.#slots[slot] = entry
    this.#tags[slot] = tagOf(this.#entries[at + 2])
  }

  #growTo(count: number): void {
    if (count <= this.room) return
    let { room } = this
    while (room < count) room *= 2
    const entries = new Uint32Array(room * ENTRY_WORDS)
    entries.set(this.#entries.subarray(0, this.count * ENTRY_WORDS))
    this.#entries = entries
    this.#slots = new Int32Array(2 * room)
    this.#tags = new Uint8Array(2 * room)
    for (let entry = 0; entry < this.count; entry++) this.#place(entry)
  }
}

/** Never 0. Of another word than the slot is. */
const tagOf = (word: number): number => word >>> 24 || 1

// The ids of one job (S36): 64 bits of id digest and 32 bits of body digest each, nothing else.
//
// Extendible hashing over small open-addressing tables. One big table would stop the broker for a
// second each time it doubles at ten million ids, and stand half empty after it; here a step never
// moves more than one bucket, and the load stays between 0.64 and 0.8. Ids are never removed one by
// one: the job's index goes as a whole, so there are no tombstones.

const BUCKET_CAPACITY_MAX = 4096
const BUCKET_CAPACITY_MIN = 16
/** 65,536 buckets, some 170 million ids; beyond it buckets grow instead of the directory. */
const DEPTH_MAX = 16
const LOAD_MAX = 0.8
const LOAD_GROWN = 0.64

export const ID_UNKNOWN = 0
export const ID_SAME_BODY = 1
export const ID_OTHER_BODY = 2
export type IdAnswer = typeof ID_UNKNOWN | typeof ID_SAME_BODY | typeof ID_OTHER_BODY

/** Words of a cell: high, low, body. Side by side, so that a look-up is one cache miss. */
const CELL_WORDS = 3

class Bucket {
  count = 0
  readonly cells: Uint32Array

  constructor(
    /** How many leading bits of `high` all its ids share. */
    readonly depth: number,
    readonly capacity: number,
  ) {
    this.cells = new Uint32Array(capacity * CELL_WORDS)
  }

  /** Where this id stands, or the empty cell where it would stand. */
  find(high: number, low: number): number {
    const { cells } = this
    let at = Math.floor((low / 0x100000000) * this.capacity) * CELL_WORDS
    while (cells[at] !== high || cells[at + 1] !== low) {
      if (this.isEmptyAt(at)) return at
      at = at + CELL_WORDS === cells.length ? 0 : at + CELL_WORDS
    }
    return at
  }

  isEmptyAt(at: number): boolean {
    return this.cells[at] === 0 && this.cells[at + 1] === 0
  }

  put(high: number, low: number, body: number): void {
    const at = this.find(high, low)
    this.cells[at] = high
    this.cells[at + 1] = low
    this.cells[at + 2] = body
    this.count++
  }

  /** Puts every id into the bucket that `choose` names by the id's high word. */
  moveTo(choose: (high: number) => Bucket): void {
    const { cells } = this
    for (let at = 0; at < cells.length; at += CELL_WORDS) {
      if (!this.isEmptyAt(at)) choose(cells[at]).put(cells[at], cells[at + 1], cells[at + 2])
    }
  }

  /** How many of its ids have this bit of the high word set. */
  countOnes(bit: number): number {
    let ones = 0
    for (let at = 0; at < this.cells.length; at += CELL_WORDS) ones += (this.cells[at] >>> bit) & 1
    return ones
  }

  isFull(): boolean {
    return this.count + 1 > this.capacity * LOAD_MAX
  }
}

export class IdIndex {
  private directory: Bucket[] = [new Bucket(0, BUCKET_CAPACITY_MIN)]
  private depth = 0
  size = 0

  lookup(high: number, low: number, body: number): IdAnswer {
    const bucket = this.directory[this.place(high)]
    const at = bucket.find(high, low)
    if (bucket.isEmptyAt(at)) return ID_UNKNOWN
    return bucket.cells[at + 2] === body ? ID_SAME_BODY : ID_OTHER_BODY
  }

  /** The caller has looked the id up: it is not here. */
  insert(high: number, low: number, body: number): void {
    let bucket = this.directory[this.place(high)]
    while (bucket.isFull()) {
      const grows = bucket.capacity < BUCKET_CAPACITY_MAX || bucket.depth === DEPTH_MAX
      if (grows) this.grow(bucket, high)
      else this.split(bucket, high)
      bucket = this.directory[this.place(high)]
    }
    bucket.put(high, low, body)
    this.size++
  }

  private place(high: number): number {
    return this.depth === 0 ? 0 : high >>> (32 - this.depth)
  }

  private grow(bucket: Bucket, high: number): void {
    const most = bucket.depth === DEPTH_MAX ? Number.POSITIVE_INFINITY : BUCKET_CAPACITY_MAX
    const capped = Math.min(most, Math.ceil((bucket.count + 1) / LOAD_GROWN))
    const grown = new Bucket(bucket.depth, capped)
    bucket.moveTo(() => grown)
    this.assign(high, grown)
  }

  private split(bucket: Bucket, high: number): void {
    const depth = bucket.depth + 1
    if (depth > this.depth) this.doubleDirectory()
    const bit = 32 - depth
    const ones = bucket.countOnes(bit)
    const halves = [bucket.count - ones, ones].map((count) => new Bucket(depth, capacityFor(count)))
    bucket.moveTo((one) => halves[(one >>> bit) & 1])
    const flipped = (high ^ (1 << bit)) >>> 0
    this.assign(high, halves[(high >>> bit) & 1])
    this.assign(flipped, halves[(flipped >>> bit) & 1])
  }

  private doubleDirectory(): void {
    const doubled: Bucket[] = []
    for (const bucket of this.directory) doubled.push(bucket, bucket)
    this.directory = doubled
    this.depth++
  }

  /** Points every directory place that shares the bucket's leading bits with `high` at it. */
  private assign(high: number, bucket: Bucket): void {
    const span = 1 << (this.depth - bucket.depth)
    const from = this.place(high) & ~(span - 1)
    for (let at = from; at < from + span; at++) this.directory[at] = bucket
  }
}

function capacityFor(count: number): number {
  const wanted = Math.ceil((count + 1) / LOAD_GROWN)
  return Math.max(BUCKET_CAPACITY_MIN, Math.min(BUCKET_CAPACITY_MAX, wanted))
}

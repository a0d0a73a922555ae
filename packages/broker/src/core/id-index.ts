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

class Bucket {
  count = 0
  readonly high: Uint32Array
  readonly low: Uint32Array
  readonly body: Uint32Array

  constructor(
    /** How many leading bits of `high` all its ids share. */
    readonly depth: number,
    readonly capacity: number,
  ) {
    this.high = new Uint32Array(capacity)
    this.low = new Uint32Array(capacity)
    this.body = new Uint32Array(capacity)
  }

  /** The place of this id, or the empty place where it would stand. */
  find(high: number, low: number): number {
    let at = Math.floor((low / 0x100000000) * this.capacity)
    while (this.high[at] !== high || this.low[at] !== low) {
      if (this.high[at] === 0 && this.low[at] === 0) return at
      at = at + 1 === this.capacity ? 0 : at + 1
    }
    return at
  }

  put(high: number, low: number, body: number): void {
    const at = this.find(high, low)
    this.high[at] = high
    this.low[at] = low
    this.body[at] = body
    this.count++
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
    if (bucket.high[at] === 0 && bucket.low[at] === 0) return ID_UNKNOWN
    return bucket.body[at] === body ? ID_SAME_BODY : ID_OTHER_BODY
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
    const wanted = Math.ceil((bucket.count + 1) / LOAD_GROWN)
    const capped = bucket.depth === DEPTH_MAX ? wanted : Math.min(BUCKET_CAPACITY_MAX, wanted)
    const grown = new Bucket(bucket.depth, capped)
    for (let at = 0; at < bucket.capacity; at++) {
      if (bucket.high[at] !== 0 || bucket.low[at] !== 0) {
        grown.put(bucket.high[at], bucket.low[at], bucket.body[at])
      }
    }
    this.assign(high, grown)
  }

  private split(bucket: Bucket, high: number): void {
    const depth = bucket.depth + 1
    if (depth > this.depth) this.doubleDirectory()
    const bit = 32 - depth
    let ones = 0
    for (let at = 0; at < bucket.capacity; at++) ones += (bucket.high[at] >>> bit) & 1
    const capacity = (count: number) =>
      Math.max(
        BUCKET_CAPACITY_MIN,
        Math.min(BUCKET_CAPACITY_MAX, Math.ceil((count + 1) / LOAD_GROWN)),
      )
    const halves = [
      new Bucket(depth, capacity(bucket.count - ones)),
      new Bucket(depth, capacity(ones)),
    ]
    for (let at = 0; at < bucket.capacity; at++) {
      if (bucket.high[at] !== 0 || bucket.low[at] !== 0) {
        halves[(bucket.high[at] >>> bit) & 1].put(bucket.high[at], bucket.low[at], bucket.body[at])
      }
    }
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

// The ids of one job (S36): 64 bits of id digest and 32 bits of body digest each, nothing else.
//
// Extendible hashing over small open-addressing tables. One big table would stop the broker for a
// second each time it doubles at ten million ids, and stand half empty after it; here a step never
// moves more than one bucket, and the load stays between 0.57 and 0.8 in all but small ones. Ids are never removed one by
// one: the job's index goes as a whole, so there are no tombstones.

import { BLOCK_CELLS, CELL_WORDS, type IdBlock, type IdBlocks } from './id-blocks.js'

const BLOCK_SHIFT = Math.log2(BLOCK_CELLS)
const BLOCK_MASK = BLOCK_CELLS - 1
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
  /** Cells of each block; whole blocks, or one that is smaller. */
  readonly cells: readonly Uint32Array[]
  private readonly blocks: readonly IdBlock[]

  constructor(
    /** How many leading bits of `high` all its ids share. */
    readonly depth: number,
    readonly capacity: number,
    private readonly memory: IdBlocks,
  ) {
    this.blocks = memory.take(capacity)
    this.cells = this.blocks.map(({ cells }) => cells)
  }

  release(): void {
    this.memory.give(this.blocks)
  }

  peek(low: number): number {
    const cell = this.home(low)
    return this.cells[cell >>> BLOCK_SHIFT][(cell & BLOCK_MASK) * CELL_WORDS]
  }

  /** The cell where this id stands, or the empty one where it would stand. */
  find(high: number, low: number): number {
    let cell = this.home(low)
    for (;;) {
      const cells = this.cells[cell >>> BLOCK_SHIFT]
      const at = (cell & BLOCK_MASK) * CELL_WORDS
      if (cells[at] === high && cells[at + 1] === low) return cell
      if (cells[at] === 0 && cells[at + 1] === 0) return cell
      cell = cell + 1 === this.capacity ? 0 : cell + 1
    }
  }

  isEmptyAt(cell: number): boolean {
    const cells = this.cells[cell >>> BLOCK_SHIFT]
    const at = (cell & BLOCK_MASK) * CELL_WORDS
    return cells[at] === 0 && cells[at + 1] === 0
  }

  bodyAt(cell: number): number {
    return this.cells[cell >>> BLOCK_SHIFT][(cell & BLOCK_MASK) * CELL_WORDS + 2]
  }

  put(high: number, low: number, body: number): void {
    const cell = this.find(high, low)
    const cells = this.cells[cell >>> BLOCK_SHIFT]
    const at = (cell & BLOCK_MASK) * CELL_WORDS
    cells[at] = high
    cells[at + 1] = low
    cells[at + 2] = body
    this.count++
  }

  /** Puts every id into the bucket that `choose` names by the id's high word, and gives its memory up. */
  moveTo(choose: (high: number) => Bucket): void {
    for (const cells of this.cells) {
      for (let at = 0; at < cells.length; at += CELL_WORDS) {
        if (cells[at] === 0 && cells[at + 1] === 0) continue
        choose(cells[at]).put(cells[at], cells[at + 1], cells[at + 2])
      }
    }
    this.release()
  }

  /** How many of its ids have this bit of the high word set. */
  countOnes(bit: number): number {
    let ones = 0
    for (const cells of this.cells) {
      for (let at = 0; at < cells.length; at += CELL_WORDS) ones += (cells[at] >>> bit) & 1
    }
    return ones
  }

  isFull(): boolean {
    return this.count + 1 > this.capacity * LOAD_MAX
  }

  private home(low: number): number {
    return Math.floor((low / 0x100000000) * this.capacity)
  }
}

export class IdIndex {
  private directory: Bucket[]
  private depth = 0
  size = 0

  constructor(private readonly memory: IdBlocks) {
    this.directory = [new Bucket(0, BUCKET_CAPACITY_MIN, memory)]
  }

  /** Gives all memory up; the index is used no more. */
  release(): void {
    for (const bucket of new Set(this.directory)) bucket.release()
    this.directory = []
  }

  lookup(high: number, low: number, body: number): IdAnswer {
    const bucket = this.directory[this.place(high)]
    const cell = bucket.find(high, low)
    if (bucket.isEmptyAt(cell)) return ID_UNKNOWN
    return bucket.bodyAt(cell) === body ? ID_SAME_BODY : ID_OTHER_BODY
  }

  /** Only reads what a look-up will read first. */
  peek(high: number, low: number): number {
    return this.directory[this.place(high)].peek(low)
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
    const grown = new Bucket(bucket.depth, capacityFor(bucket.count, most), this.memory)
    bucket.moveTo(() => grown)
    this.assign(high, grown)
  }

  private split(bucket: Bucket, high: number): void {
    const depth = bucket.depth + 1
    if (depth > this.depth) this.doubleDirectory()
    const bit = 32 - depth
    const ones = bucket.countOnes(bit)
    const halves = [bucket.count - ones, ones].map(
      (count) => new Bucket(depth, capacityFor(count, BUCKET_CAPACITY_MAX), this.memory),
    )
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

/** Whole blocks from one block on. */
function capacityFor(count: number, most: number): number {
  const wanted = Math.ceil((count + 1) / LOAD_GROWN)
  const whole = wanted < BLOCK_CELLS ? wanted : Math.ceil(wanted / BLOCK_CELLS) * BLOCK_CELLS
  return Math.max(BUCKET_CAPACITY_MIN, Math.min(most, whole))
}

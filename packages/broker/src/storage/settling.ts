// The settlements since the last transaction: the blocks that they touch are read, and their rows written,
// once each; their results become as few chunks as can be. All of it is in memory until `write`. An item that
// is settled already changes nothing, and its result is left out: that is what gives each item exactly one.
import { STATUSES } from '../results/log.js'
import type { BlockReader } from './block-reader.js'
import { BlockRow } from './block-row.js'
import type { Counters, JobCounter } from './counters.js'
import type { Table } from './environment.js'
import { type BlockHead, decodeBlock, decodeHead, headBytes, rowOf } from './item-block.js'
import { type BlockPlace, blockKey, placeOf, resultKey } from './layout.js'
import { CHUNK_BYTES_MAX, CHUNK_HEADER_BYTES, sealChunk, statusAt } from './result-chunk.js'
import type { Segments } from './segments.js'
import type { SettledColumns } from './settled-columns.js'

interface OpenBlock extends BlockPlace {
  readonly key: Buffer
  readonly block: BlockHead
  readonly row: BlockRow
  readonly lastSequence: number
  /** Settled in this transaction. */
  items: number
  tokens: number
}

interface OpenChunk {
  readonly firstOffset: number
  readonly pieces: Piece[]
  count: number
  bytes: number
}

/** Records that follow each other in what was handed in. */
interface Piece {
  readonly records: Uint8Array
  readonly start: number
  end: number
}

/** Heads of blocks that were settled in lately: they do not change, and the next batch is often of the same. */
export class BlockCache {
  readonly #blocks = new Map<string, BlockHead>()
  /** Not in the cache any more; settlements that are not written yet may look at them still. */
  #dropped: BlockHead[] = []

  /** @param release takes the memory of a block that nobody looks at any more. */
  constructor(
    readonly maxBlocks: number,
    readonly release: (block: BlockHead) => void = () => {},
  ) {}

  get(name: string): BlockHead | undefined {
    return this.#blocks.get(name)
  }

  set(name: string, block: BlockHead): void {
    this.#blocks.set(name, block)
    if (this.#blocks.size <= this.maxBlocks) return
    const [oldest] = this.#blocks.keys()
    this.delete(oldest)
  }

  delete(name: string): void {
    const block = this.#blocks.get(name)
    if (block === undefined) return
    this.#blocks.delete(name)
    this.#dropped.push(block)
  }

  clear(): void {
    for (const name of [...this.#blocks.keys()]) this.delete(name)
  }

  /** All settlements are written. */
  releaseDropped(): void {
    for (const block of this.#dropped) this.release(block)
    this.#dropped = []
  }
}

export interface SettleTables {
  readonly blocks: Table
  readonly results: Table
}

export class Settling {
  readonly #open = new Map<string, OpenBlock>()
  readonly #chunks = new Map<number, OpenChunk>()
  readonly #full: { readonly job: number; readonly chunk: OpenChunk }[] = []
  /** Blocks that cannot be read, to be set aside by whoever writes. */
  readonly damaged = new Map<string, Buffer>()
  #last: OpenBlock | null = null

  constructor(
    readonly tables: SettleTables,
    readonly log: BlockReader,
    readonly segments: Segments,
    readonly counters: Counters,
    readonly cache: BlockCache,
    readonly isJob: (job: number) => boolean,
  ) {}

  /** 1 per item that was unsettled until now. */
  settle(columns: SettledColumns): Uint8Array {
    const { jobs, sequences, models, paddedLengths, records, recordEnds } = columns
    const settled = new Uint8Array(sequences.length)
    let counter: JobCounter | null = null
    for (let i = 0; i < sequences.length; i++) {
      const job = jobs[i]
      if (i === 0 || job !== jobs[i - 1])
        counter = this.isJob(job) ? this.counters.change(job) : null
      if (counter === null) continue
      if (models[i] < 0) counter.accepted += 1
      else if (!this.#mark(job, models[i], paddedLengths[i], sequences[i])) continue
      settled[i] = 1
      this.#keep(counter, records, i === 0 ? 0 : recordEnds[i - 1], recordEnds[i])
    }
    return settled
  }

  /** Within the transaction. */
  write(): void {
    for (const { key, job, model, paddedLength, row, items, tokens } of this.#open.values()) {
      if (items === 0) continue
      this.counters.add(job, { model, paddedLength }, -items, -tokens)
      if (row.itemsLeft > 0) this.tables.blocks.put(key, row.encode())
      else {
        this.cache.delete(key.toString('latin1'))
        this.tables.blocks.remove(key)
        this.segments.add(row.place.segment, -1, -row.place.bytes)
      }
    }
    for (const { job, chunk } of this.#full) this.#writeChunk(job, chunk)
    for (const [job, chunk] of this.#chunks) this.#writeChunk(job, chunk)
  }

  /** A block that is taken out of use must not be written by `write`; what was settled of it counts. */
  forget(key: Buffer): void {
    const name = key.toString('latin1')
    const open = this.#open.get(name)
    if (open !== undefined && open.items > 0) {
      const { job, model, paddedLength, items, tokens } = open
      this.counters.add(job, { model, paddedLength }, -items, -tokens)
    }
    this.#open.delete(name)
    this.cache.delete(name)
    this.#last = null
  }

  #mark(job: number, model: number, paddedLength: number, sequence: number): boolean {
    const open = this.#blockOf(job, model, paddedLength, sequence)
    if (open === null) return false
    const at = rowOf(open.block, sequence)
    if (at < 0 || open.row.isSettled(at)) return false
    const tokens = open.block.lengths[at]
    open.row.settle(at, tokens)
    open.items += 1
    open.tokens += tokens
    return true
  }

  #blockOf(job: number, model: number, paddedLength: number, sequence: number): OpenBlock | null {
    const last = this.#last
    const isSameShape =
      last?.job === job && last.model === model && last.paddedLength === paddedLength
    if (isSameShape && sequence >= last.firstSequence && sequence <= last.lastSequence) return last
    const start = blockKey(job, { model, paddedLength }, sequence)
    // The first item of a block is mostly the first to be settled, and to look for it alone is cheap.
    const isFirst = this.tables.blocks.doesExist(start)
    const key = isFirst ? start : keyAtOrBefore(this.tables.blocks, start, 12)
    if (key === null) return null
    const name = key.toString('latin1')
    if (this.damaged.has(name)) return null
    const open = this.#open.get(name) ?? this.#read(key, name)
    if (open === null) {
      this.damaged.set(name, key)
      return null
    }
    this.#open.set(name, open)
    this.#last = open
    return open
  }

  #read(key: Buffer, name: string): OpenBlock | null {
    const value = this.tables.blocks.getBinary(key)
    const row = value === undefined ? null : BlockRow.decode(value)
    if (row === null) return null
    const block = this.cache.get(name) ?? this.#readHead(row)
    if (block?.count !== row.count) return null
    this.cache.set(name, block)
    const lastSequence = block.firstSequence + block.sequenceDeltas[block.count - 1]
    return { ...placeOf(key), key, block, row, lastSequence, items: 0, tokens: 0 }
  }

  /** Of the block, which is long, only what is needed, unless that cannot be told apart. */
  #readHead({ place, count }: BlockRow): BlockHead | null {
    const bytes = this.log.read({ ...place, bytes: Math.min(headBytes(count), place.bytes) })
    const head = bytes === null ? null : decodeHead(bytes)
    if (head !== null) return head
    if (bytes !== null) this.log.release(bytes)
    const all = this.log.read(place)
    return all === null ? null : decodeBlock(all)
  }

  #keep(counter: JobCounter, records: Uint8Array, start: number, end: number): void {
    const bytes = end - start
    let chunk = this.#chunks.get(counter.job)
    if (chunk !== undefined && chunk.bytes + bytes > CHUNK_BYTES_MAX) {
      this.#full.push({ job: counter.job, chunk })
      chunk = undefined
    }
    if (chunk === undefined) {
      const firstOffset = counter.endOffset
      chunk = { firstOffset, pieces: [], count: 0, bytes: CHUNK_HEADER_BYTES }
      this.#chunks.set(counter.job, chunk)
    }
    const last = chunk.pieces.at(-1)
    if (last?.records === records && last.end === start) last.end = end
    else chunk.pieces.push({ records, start, end })
    chunk.count += 1
    chunk.bytes += bytes
    counter[STATUSES[statusAt(records, start)]] += 1
    counter.endOffset += 1
    counter.unreadBytes += bytes
  }

  #writeChunk(job: number, { firstOffset, pieces, count, bytes }: OpenChunk): void {
    const chunk = Buffer.allocUnsafe(bytes)
    let at = CHUNK_HEADER_BYTES
    for (const { records, start, end } of pieces) {
      chunk.set(records.subarray(start, end), at)
      at += end - start
    }
    this.tables.results.put(resultKey(job, firstOffset), sealChunk(chunk, count, firstOffset))
  }
}

/** The greatest key up to `key` that begins with the same `prefixLength` bytes. */
export function keyAtOrBefore(table: Table, key: Buffer, prefixLength: number): Buffer | null {
  for (const found of table.getKeys({ start: key, reverse: true, limit: 1 })) {
    const copy = Buffer.from(found)
    return copy.compare(key, 0, prefixLength, 0, prefixLength) === 0 ? copy : null
  }
  return null
}

// The settlements of one transaction: the blocks and marks that they touch are each read and written
// once, their results become as few chunks as can be. An item that is settled already changes nothing,
// and its result is left out: that is what gives each item exactly one.
import { STATUSES } from '../results/log.js'
import { BlockMarks } from './block-marks.js'
import type { Counters, JobCounter } from './counters.js'
import type { Table } from './environment.js'
import { decodeBlock, type ItemBlock, rowOf } from './item-block.js'
import { blockKey, placeOf, resultKey } from './layout.js'
import type { SettleWrite } from './messages.js'
import { CHUNK_BYTES_MAX, CHUNK_HEADER_BYTES, sealChunk, statusAt } from './result-chunk.js'
import type { DiskShape } from './store.js'

interface OpenBlock {
  readonly key: Buffer
  readonly block: ItemBlock
  readonly marks: BlockMarks
  isDirty: boolean
}

interface OpenChunk {
  readonly firstOffset: number
  readonly parts: Uint8Array[]
  bytes: number
}

/** Blocks that were settled in lately: they do not change, and the next batch is often of the same. */
export class BlockCache {
  readonly #blocks = new Map<string, ItemBlock>()

  constructor(readonly maxBlocks: number) {}

  get(name: string): ItemBlock | undefined {
    return this.#blocks.get(name)
  }

  set(name: string, block: ItemBlock): void {
    this.#blocks.set(name, block)
    if (this.#blocks.size <= this.maxBlocks) return
    const [oldest] = this.#blocks.keys()
    this.#blocks.delete(oldest)
  }

  delete(name: string): void {
    this.#blocks.delete(name)
  }

  clear(): void {
    this.#blocks.clear()
  }
}

export interface SettleTables {
  readonly items: Table
  readonly marks: Table
  readonly results: Table
}

export class Settling {
  readonly #open = new Map<string, OpenBlock>()
  readonly #chunks = new Map<number, OpenChunk>()
  #last: OpenBlock | null = null

  /** @param onDamaged takes the block out of use; called within the transaction. */
  constructor(
    readonly tables: SettleTables,
    readonly counters: Counters,
    readonly cache: BlockCache,
    readonly isJob: (job: number) => boolean,
    readonly onDamaged: (key: Buffer) => void,
  ) {}

  /** 1 per item that was unsettled until now. */
  settle(write: SettleWrite): Uint8Array {
    const { jobs, sequences, models, paddedLengths, records, recordEnds } = write
    const settled = new Uint8Array(sequences.length)
    for (let i = 0; i < sequences.length; i++) {
      const job = jobs[i]
      if (!this.isJob(job)) continue
      const shape = { model: models[i], paddedLength: paddedLengths[i] }
      if (shape.model < 0) this.counters.change(job).accepted += 1
      else if (!this.#mark(job, shape, sequences[i])) continue
      settled[i] = 1
      const start = i === 0 ? 0 : recordEnds[i - 1]
      this.#keep(this.counters.change(job), records.subarray(start, recordEnds[i]))
    }
    return settled
  }

  /** Ends the transaction's part. */
  write(): void {
    for (const { key, marks, isDirty } of this.#open.values()) {
      if (!isDirty) continue
      if (marks.itemsLeft > 0) this.tables.marks.put(key, marks.encode())
      else {
        this.cache.delete(key.toString('latin1'))
        this.tables.marks.remove(key)
        this.tables.items.remove(key)
      }
    }
    for (const [job, chunk] of this.#chunks) this.#writeChunk(job, chunk)
  }

  /** A block that is taken out of use must not be written by `write`. */
  forget(key: Buffer): void {
    const name = key.toString('latin1')
    this.#open.delete(name)
    this.cache.delete(name)
    this.#last = null
  }

  #mark(job: number, shape: DiskShape, sequence: number): boolean {
    const open = this.#blockOf(job, shape, sequence)
    if (open === null) return false
    const row = rowOf(open.block, sequence)
    if (row < 0 || open.marks.isSettled(row)) return false
    const tokens = open.block.lengths[row]
    open.marks.settle(row, tokens)
    open.isDirty = true
    this.counters.add(job, shape, -1, -tokens)
    return true
  }

  #blockOf(job: number, shape: DiskShape, sequence: number): OpenBlock | null {
    if (this.#last !== null && isWithin(this.#last, job, shape, sequence)) return this.#last
    const key = keyAtOrBefore(this.tables.items, blockKey(job, shape, sequence), 12)
    if (key === null) return null
    const name = key.toString('latin1')
    const open = this.#open.get(name) ?? this.#read(key, name)
    if (open === null) {
      this.onDamaged(key)
      return null
    }
    this.#open.set(name, open)
    this.#last = open
    return open
  }

  #read(key: Buffer, name: string): OpenBlock | null {
    let block = this.cache.get(name)
    if (block === undefined) {
      const bytes = this.tables.items.getBinary(key)
      const decoded = bytes === undefined ? null : decodeBlock(aligned(bytes))
      if (decoded === null) return null
      block = decoded
      this.cache.set(name, block)
    }
    const row = this.tables.marks.getBinary(key)
    const marks = row === undefined ? null : BlockMarks.decode(row)
    if (marks === null || marks.count !== block.count) return null
    return { key, block, marks, isDirty: false }
  }

  #keep(counter: JobCounter, record: Uint8Array): void {
    let chunk = this.#chunks.get(counter.job)
    if (chunk !== undefined && chunk.bytes + record.byteLength > CHUNK_BYTES_MAX) {
      this.#writeChunk(counter.job, chunk)
      chunk = undefined
    }
    if (chunk === undefined) {
      chunk = { firstOffset: counter.endOffset, parts: [], bytes: CHUNK_HEADER_BYTES }
      this.#chunks.set(counter.job, chunk)
    }
    chunk.parts.push(record)
    chunk.bytes += record.byteLength
    counter[STATUSES[statusAt(record, 0)]] += 1
    counter.endOffset += 1
    counter.unreadBytes += record.byteLength
  }

  #writeChunk(job: number, { firstOffset, parts, bytes }: OpenChunk): void {
    const chunk = Buffer.allocUnsafe(bytes)
    let at = CHUNK_HEADER_BYTES
    for (const part of parts) {
      chunk.set(part, at)
      at += part.byteLength
    }
    this.tables.results.put(
      resultKey(job, firstOffset),
      sealChunk(chunk, parts.length, firstOffset),
    )
  }
}

function isWithin({ key, block }: OpenBlock, job: number, shape: DiskShape, sequence: number) {
  const place = placeOf(key)
  const last = block.firstSequence + block.sequenceDeltas[block.count - 1]
  return (
    place.job === job &&
    place.model === shape.model &&
    place.paddedLength === shape.paddedLength &&
    sequence >= block.firstSequence &&
    sequence <= last
  )
}

/** The greatest key up to `key` that begins with the same `prefixLength` bytes. */
export function keyAtOrBefore(table: Table, key: Buffer, prefixLength: number): Buffer | null {
  for (const found of table.getKeys({ start: key, reverse: true, limit: 1 })) {
    const copy = Buffer.from(found)
    return copy.compare(key, 0, prefixLength, 0, prefixLength) === 0 ? copy : null
  }
  return null
}

/** The bytes, which are the caller's own, at an address that every column can be viewed at. */
export function aligned(bytes: Uint8Array): Uint8Array {
  return bytes.byteOffset % 8 === 0 ? bytes : new Uint8Array(bytes)
}

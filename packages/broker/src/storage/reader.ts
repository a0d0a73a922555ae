// What is read of the data file while the broker runs: items of a shape behind a cursor, one item by
// its sequence, results by offset. Runs in the reading thread, on the newest committed state.

import { BlockRow } from './block-row.js'
import { decodeRow, JOB_FIELDS, shapeName } from './counters.js'
import type { Environment } from './environment.js'
import { decodeBlock, type ItemBlock, rowOf } from './item-block.js'
import { blockKey, jobKey, keyBehind, placeOf, readBig, resultKey, shapeKey } from './layout.js'
import { type Allocate, LoadedItemsBuilder } from './loaded-items.js'
import { decodeChunk } from './result-chunk.js'
import { keyAtOrBefore } from './settling.js'
import type { DiskShape, LoadedItems } from './store.js'

/** Blocks looked through in one call, so that a call is bounded whatever was settled out of order. */
const BLOCKS_PER_READ = 256

/** Where reading of a shape of a job stands: before `row` of the block with that first sequence. */
interface Cursor {
  sequence: number
  row: number
}

interface OpenBlock {
  readonly block: ItemBlock
  readonly row: BlockRow
}

interface UnreadBlock {
  readonly key: Buffer
  /** Its row, as it was read. */
  readonly value: Buffer
}

export interface ResultBytes {
  /** Bytes of whole records, one after the other. */
  readonly bytes: Uint8Array
  readonly count: number
  readonly nextOffset: number
}

export class Reader {
  readonly #cursors = new Map<number, Map<string, Cursor>>()

  #last: { readonly name: string; readonly block: ItemBlock } | null = null
  /** Read before `#last`: what is made of them is copied when the call ends. */
  #read: ItemBlock[] = []

  /** @param onDamaged told of what cannot be read; it is skipped. */
  constructor(
    readonly environment: Environment,
    readonly onDamaged: (table: 'blocks' | 'results', key: Buffer) => void,
  ) {}

  /** @param allocate memory for what is read. */
  read(
    job: number,
    shape: DiskShape,
    tokens: number,
    maxBytes: number,
    allocate?: Allocate,
  ): LoadedItems | null {
    this.#releaseRead()
    const cursor = this.#cursor(job, shape)
    const builder = new LoadedItemsBuilder(job, shape)
    const isFull = (block: ItemBlock, row: number) =>
      builder.count > 0 && builder.isFull(block, row, tokens, maxBytes)
    for (;;) {
      this.environment.root.resetReadTxn()
      const end = this.#scan(job, shape, cursor, builder, isFull)
      if (end === 'full' || end === 'last')
        return builder.count > 0 ? builder.columns(allocate) : null
      if (end === 'more' && builder.count > 0) return builder.columns(allocate)
      if (end !== 'more' && this.#isDamaged(end)) skip(cursor, end.key)
    }
  }

  /** Adds items until it is full, has seen the last block, or many, or meets one that it cannot read. */
  #scan(
    job: number,
    shape: DiskShape,
    cursor: Cursor,
    builder: LoadedItemsBuilder,
    isFull: (block: ItemBlock, row: number) => boolean,
  ): 'full' | 'last' | 'more' | UnreadBlock {
    const range = {
      start: blockKey(job, shape, cursor.sequence),
      end: keyBehind(shapeKey(job, shape)),
      limit: BLOCKS_PER_READ,
    }
    let blocks = 0
    for (const found of this.environment.tables.blocks.getRange(range)) {
      const key = Buffer.from(found.key)
      const value = Buffer.from(found.value)
      blocks += 1
      const { firstSequence } = placeOf(key)
      if (firstSequence !== cursor.sequence) {
        cursor.sequence = firstSequence
        cursor.row = 0
      }
      const open = this.#open(key, value)
      if (open === null) return { key, value }
      const { block, row } = open
      for (; cursor.row < block.count; cursor.row++) {
        if (row.isSettled(cursor.row)) continue
        if (isFull(block, cursor.row)) return 'full'
        builder.add(block, cursor.row)
      }
      skip(cursor, key)
    }
    return blocks === BLOCKS_PER_READ ? 'more' : 'last'
  }

  /** @param ofJob null: of any. */
  find(sequence: number, ofJob: number | null): LoadedItems | null {
    this.#releaseRead()
    this.environment.root.resetReadTxn()
    for (const { job, shape } of this.#shapes(ofJob)) {
      const found = this.#blockWith(job, shape, sequence)
      if (found === null) continue
      const { block, row, at } = found
      if (row.isSettled(at)) return null
      const builder = new LoadedItemsBuilder(job, shape)
      builder.add(block, at)
      return builder.columns()
    }
    return null
  }

  #shapes(ofJob: number | null): { readonly job: number; readonly shape: DiskShape }[] {
    const range = ofJob === null ? {} : { start: jobKey(ofJob), end: keyBehind(jobKey(ofJob)) }
    const keys = Array.from(this.environment.tables.counters.getKeys(range))
    return keys
      .filter((key) => key.byteLength === 12)
      .map((key) => ({
        job: key.readUInt32BE(0),
        shape: { model: key.readUInt32BE(4), paddedLength: key.readUInt32BE(8) },
      }))
  }

  #blockWith(
    job: number,
    shape: DiskShape,
    sequence: number,
  ): (OpenBlock & { readonly at: number }) | null {
    const { blocks } = this.environment.tables
    for (;;) {
      const key = keyAtOrBefore(blocks, blockKey(job, shape, sequence), 12)
      const found = key === null ? undefined : blocks.getBinary(key)
      if (key === null || found === undefined) return null
      const value = Buffer.from(found)
      const open = this.#open(key, value)
      if (open !== null) {
        const at = rowOf(open.block, sequence)
        return at < 0 ? null : { ...open, at }
      }
      if (this.#isDamaged({ key, value })) return null
    }
  }

  countAhead(job: number, shape: DiskShape, sequence: number): number {
    this.#releaseRead()
    this.environment.root.resetReadTxn()
    const { blocks } = this.environment.tables
    const range = { start: shapeKey(job, shape), end: blockKey(job, shape, sequence + 1) }
    let ahead = 0
    for (const { value } of blocks.getRange(range)) ahead += BlockRow.decode(value)?.itemsLeft ?? 0
    // The item stands in the last one.
    const found = this.#blockWith(job, shape, sequence)
    if (found === null) return ahead
    const { block, row, at } = found
    for (let i = at; i < block.count; i++) if (!row.isSettled(i)) ahead -= 1
    return ahead
  }

  /** null: dropped, or never there. */
  results(job: number, offset: number, maxBytes: number): ResultBytes | null {
    this.environment.root.resetReadTxn()
    const { results, counters } = this.environment.tables
    const row = counters.getBinary(jobKey(job))
    const numbers = row === undefined ? null : decodeRow(row, JOB_FIELDS.length)
    if (numbers !== null && offset < numbers[JOB_FIELDS.indexOf('firstOffset')]) return null
    const end = numbers?.[JOB_FIELDS.indexOf('endOffset')] ?? offset
    const parts: Uint8Array[] = []
    let bytes = 0
    let count = 0
    let next = offset
    const first = keyAtOrBefore(results, resultKey(job, offset), 4) ?? resultKey(job, offset)
    for (const { key, value } of results.getRange({
      start: first,
      end: keyBehind(jobKey(job)),
    })) {
      const chunk = decodeChunk(value)
      const firstOffset = readBig(key, 4)
      if (chunk === null) {
        this.onDamaged('results', Buffer.from(key))
        continue
      }
      const chunkEnd = firstOffset + chunk.count
      if (chunkEnd <= next) continue
      if (firstOffset > next) {
        // A hole where results were set aside: the caller goes on behind it.
        if (count === 0) next = firstOffset
        break
      }
      let i = next - firstOffset
      const from = chunk.starts[i]
      while (i < chunk.count) {
        const length = chunk.starts[i + 1] - chunk.starts[i]
        if (count > 0 && bytes + length > maxBytes) break
        bytes += length
        count += 1
        i += 1
      }
      parts.push(chunk.bytes.slice(from, chunk.starts[i]))
      next = firstOffset + i
      if (i < chunk.count) break
    }
    if (count === 0 && next === offset) next = Math.max(offset, end)
    return { bytes: concat(parts, bytes), count, nextOffset: next }
  }

  forget(job: number): void {
    this.#cursors.delete(job)
  }

  #cursor(job: number, shape: DiskShape): Cursor {
    let shapes = this.#cursors.get(job)
    if (shapes === undefined) {
      shapes = new Map()
      this.#cursors.set(job, shapes)
    }
    const name = shapeName(shape)
    let cursor = shapes.get(name)
    if (cursor === undefined) {
      cursor = { sequence: 0, row: 0 }
      shapes.set(name, cursor)
    }
    return cursor
  }

  /** null: its bytes are not where the row says. */
  #open(key: Buffer, value: Buffer): OpenBlock | null {
    const row = BlockRow.decode(value)
    const block = row === null ? null : this.#block(key, row)
    return row !== null && block !== null && row.count === block.count ? { block, row } : null
  }

  /** Or the writing thread has moved it, or settled the last of it, since this state was read. */
  #isDamaged({ key, value }: UnreadBlock): boolean {
    this.environment.root.resetReadTxn()
    const newer = this.environment.tables.blocks.getBinary(key)
    if (newer === undefined || !newer.equals(value)) return false
    this.onDamaged('blocks', key)
    return true
  }

  #releaseRead(): void {
    for (const { bytes } of this.#read) this.environment.log.release(bytes)
    this.#read = []
  }

  /** A block does not change: the one that the last batch ended in is not read again for the next. */
  #block(key: Buffer, { place }: BlockRow): ItemBlock | null {
    const name = key.toString('latin1')
    if (this.#last?.name === name) return this.#last.block
    const bytes = this.environment.log.read(place)
    const block = bytes === null ? null : decodeBlock(bytes)
    if (this.#last !== null) this.#read.push(this.#last.block)
    this.#last = block === null ? null : { name, block }
    return block
  }
}

/** Behind the block: the next one begins at a greater sequence. */
function skip(cursor: Cursor, key: Buffer): void {
  cursor.sequence = placeOf(key).firstSequence + 1
  cursor.row = 0
}

function concat(parts: readonly Uint8Array[], bytes: number): Uint8Array {
  const all = new Uint8Array(bytes)
  let at = 0
  for (const part of parts) {
    all.set(part, at)
    at += part.byteLength
  }
  return all
}

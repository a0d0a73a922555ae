// What is read of the data file while the broker runs: items of a shape behind a cursor, one item by
// its sequence, results by offset. Runs in the reading thread, on the newest committed state.

import { BlockMarks } from './block-marks.js'
import { decodeRow, JOB_FIELDS, shapeName } from './counters.js'
import type { Environment } from './environment.js'
import { decodeBlock, type ItemBlock, rowOf } from './item-block.js'
import { blockKey, jobKey, keyBehind, placeOf, readBig, resultKey, shapeKey } from './layout.js'
import { LoadedItemsBuilder } from './loaded-items.js'
import { decodeChunk } from './result-chunk.js'
import { aligned, keyAtOrBefore } from './settling.js'
import type { DiskShape, LoadedItems } from './store.js'

/** Blocks looked through in one call, so that a call is bounded whatever was settled out of order. */
const BLOCKS_PER_READ = 256

/** Where reading of a shape of a job stands: before `row` of the block with that first sequence. */
interface Cursor {
  sequence: number
  row: number
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

  /** @param onDamaged told of what cannot be read; it is skipped. */
  constructor(
    readonly environment: Environment,
    readonly onDamaged: (table: 'items' | 'results', key: Buffer) => void,
  ) {}

  read(job: number, shape: DiskShape, tokens: number, maxBytes: number): LoadedItems | null {
    this.environment.root.resetReadTxn()
    const { items } = this.environment.tables
    const cursor = this.#cursor(job, shape)
    const builder = new LoadedItemsBuilder(job, shape)
    const range = {
      start: blockKey(job, shape, cursor.sequence),
      end: keyBehind(shapeKey(job, shape)),
      limit: BLOCKS_PER_READ,
    }
    let blocks = 0
    for (const found of items.getKeys(range)) {
      const key = Buffer.from(found)
      blocks += 1
      const { firstSequence } = placeOf(key)
      if (firstSequence !== cursor.sequence) {
        cursor.sequence = firstSequence
        cursor.row = 0
      }
      const open = this.#open(key)
      if (open !== null) {
        const { block, marks } = open
        for (; cursor.row < block.count; cursor.row++) {
          if (marks.isSettled(cursor.row)) continue
          if (builder.count > 0 && builder.isFull(block, cursor.row, tokens, maxBytes))
            return builder.columns()
          builder.add(block, cursor.row)
        }
      }
      // Behind the block: the next one begins at a greater sequence.
      cursor.sequence = firstSequence + 1
      cursor.row = 0
    }
    if (builder.count > 0) return builder.columns()
    return blocks === BLOCKS_PER_READ ? this.read(job, shape, tokens, maxBytes) : null
  }

  /** @param ofJob null: of any. */
  find(sequence: number, ofJob: number | null): LoadedItems | null {
    this.environment.root.resetReadTxn()
    const { items, counters } = this.environment.tables
    const range = ofJob === null ? {} : { start: jobKey(ofJob), end: keyBehind(jobKey(ofJob)) }
    for (const found of counters.getKeys(range)) {
      if (found.byteLength !== 12) continue
      const row = Buffer.from(found)
      const job = row.readUInt32BE(0)
      const shape = { model: row.readUInt32BE(4), paddedLength: row.readUInt32BE(8) }
      const key = keyAtOrBefore(items, blockKey(job, shape, sequence), 12)
      const open = key === null ? null : this.#open(key)
      if (open === null) continue
      const at = rowOf(open.block, sequence)
      if (at < 0) continue
      if (open.marks.isSettled(at)) return null
      const builder = new LoadedItemsBuilder(job, shape)
      builder.add(open.block, at)
      return builder.columns()
    }
    return null
  }

  countAhead(job: number, shape: DiskShape, sequence: number): number {
    this.environment.root.resetReadTxn()
    const { marks } = this.environment.tables
    const range = { start: shapeKey(job, shape), end: blockKey(job, shape, sequence + 1) }
    let ahead = 0
    let last: { readonly key: Buffer; readonly marks: BlockMarks } | null = null
    for (const { key, value } of marks.getRange(range)) {
      const row = BlockMarks.decode(value)
      if (row === null) continue
      ahead += row.itemsLeft
      last = { key: Buffer.from(key), marks: row }
    }
    // The item stands in the last one.
    const block = last === null ? null : this.#block(last.key)
    if (last === null || block === null) return ahead
    for (let row = Math.max(0, rowOf(block, sequence)); row < block.count; row++)
      if (!last.marks.isSettled(row)) ahead -= 1
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

  #open(key: Buffer): { block: ItemBlock; marks: BlockMarks } | null {
    const row = this.environment.tables.marks.getBinary(key)
    const marks = row === undefined ? null : BlockMarks.decode(row)
    const block = this.#block(key)
    if (block === null || marks === null || marks.count !== block.count) {
      this.onDamaged('items', key)
      return null
    }
    return { block, marks }
  }

  /** A block does not change: the one that the last batch ended in is not read again for the next. */
  #block(key: Buffer): ItemBlock | null {
    const name = key.toString('latin1')
    if (this.#last?.name === name) return this.#last.block
    const bytes = this.environment.tables.items.getBinary(key)
    const block = bytes === undefined ? null : decodeBlock(aligned(bytes))
    this.#last = block === null ? null : { name, block }
    return block
  }
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

// Lays a decided batch out where the consumer will read it: token rows, ids and payloads go from the
// arenas straight into the ring or the frame, by one native call each. Per batch it makes a few
// views; per item it allocates nothing (save for payloads in the ragged layout).

import type { DispatchEffect, ItemView, RecordColumns } from '@fabric/core'
import {
  BATCH_HEADER_BYTES,
  type BatchPlan,
  type Layout,
  planBatch,
  writeBatchHeader,
} from '@fabric/protocol'
import { gatherRows } from '@fabric/shm-ring'
import type { Channel } from './channel.js'

/**
 * What the assembly needs of the core's item table. An item's record is contiguous in its segment:
 * tokens, then the id, then the payload.
 */
export type ItemSource = Pick<ItemView, 'length' | 'readRecords' | 'segment'>

const SCRATCH_ITEMS = 1024

/** One row per item, used anew for each batch. */
class Rows implements RecordColumns {
  readonly segment: Uint32Array
  /** Place of the row's segment in the list of sources. */
  readonly source: Uint32Array
  /** The part that is copied next: first tokens, then ids, then payloads. */
  readonly byteOffset: Uint32Array
  readonly tokenBytes: Uint32Array
  readonly idBytes: Uint32Array
  readonly payloadBytes: Uint32Array

  constructor(readonly capacity: number) {
    this.segment = new Uint32Array(capacity)
    this.source = new Uint32Array(capacity)
    this.byteOffset = new Uint32Array(capacity)
    this.tokenBytes = new Uint32Array(capacity)
    this.idBytes = new Uint32Array(capacity)
    this.payloadBytes = new Uint32Array(capacity)
  }
}

export class Assembler {
  #rows = new Rows(SCRATCH_ITEMS)
  #sources: ArrayBuffer[] = []
  readonly #sourceOfBuffer = new Map<ArrayBuffer, number>()
  /** Rows of items without tokens, in the ragged layout. */
  #zeros = new ArrayBuffer(0)

  constructor(
    readonly items: ItemSource,
    readonly brokerLife: bigint,
  ) {}

  /** Puts the batch into the channel. @returns its bytes. */
  write(effect: DispatchEffect, layout: Layout, channel: Channel): number {
    const plan = this.#plan(effect, layout)
    const space = channel.claim(plan.totalBytes, effect.batch)
    const { memory, byteOffset } = space
    const { batch, model, attempt } = effect
    try {
      const header = { batch, brokerLife: this.brokerLife, model, attempt }
      writeBatchHeader(memory, byteOffset, header, plan)
      this.#writeTokens(effect, plan, memory, byteOffset)
      this.#writeIds(plan, memory, byteOffset)
      if (plan.payloadBytes !== null) this.#writePayloads(plan, memory, byteOffset)
    } catch (error) {
      space.abort()
      throw error
    }
    space.commit()
    return plan.totalBytes
  }

  /** Reads the item table once, into the rows; all that follows works on them. */
  #plan(
    { items: slots, size, paddedLength, actualTokens }: DispatchEffect,
    layout: Layout,
  ): BatchPlan {
    const { items } = this
    if (size > this.#rows.capacity) this.#rows = new Rows(2 ** Math.ceil(Math.log2(size)))
    const rows = this.#rows
    this.#sources = []
    this.#sourceOfBuffer.clear()
    items.readRecords(slots, rows)
    let segment = -1
    let segmentAt = 0
    let source = 0
    let idBytes = 0
    let payloadBytes = 0
    for (let row = 0; row < size; row++) {
      if (rows.segment[row] !== segment) {
        segment = rows.segment[row]
        const { buffer, byteOffset } = items.segment(segment)
        segmentAt = byteOffset
        source = this.#source(buffer as ArrayBuffer)
      }
      rows.source[row] = source
      rows.byteOffset[row] += segmentAt
      idBytes += rows.idBytes[row]
      payloadBytes += rows.payloadBytes[row]
    }
    return planBatch({
      layout,
      size,
      paddedLength: layout === 'padded' ? paddedLength : 0,
      actualTokens,
      idBytes,
      payloadBytes: payloadBytes > 0 ? payloadBytes : null,
    })
  }

  #writeTokens(effect: DispatchEffect, plan: BatchPlan, memory: ArrayBuffer, at: number): void {
    const { tokenBytes } = this.#rows
    const { size, payloadBytes } = plan
    const lengths = new Int32Array(memory, at + plan.lengthsAt, size)
    // Only an item with a payload has another length than its tokens.
    if (payloadBytes === null)
      for (let row = 0; row < size; row++) lengths[row] = tokenBytes[row] >>> 2
    else for (let row = 0; row < size; row++) lengths[row] = this.items.length(effect.items[row])
    zero(memory, at + plan.lengthsAt + 4 * size, at + plan.inputIdsAt)
    const inputIdsAt = at + plan.inputIdsAt
    if (plan.layout === 'padded')
      this.#gather(memory, inputIdsAt, 4 * plan.paddedLength, size, tokenBytes)
    else if (payloadBytes === null) this.#gather(memory, inputIdsAt, 0, size, tokenBytes)
    else this.#gatherWithZeros(memory, inputIdsAt, lengths)
  }

  #writeIds(plan: BatchPlan, memory: ArrayBuffer, at: number): void {
    const { byteOffset, tokenBytes, idBytes } = this.#rows
    const { size } = plan
    const ends = new Uint32Array(memory, at + plan.idEndsAt, size)
    let end = 0
    for (let row = 0; row < size; row++) {
      ends[row] = end += idBytes[row]
      byteOffset[row] += tokenBytes[row]
    }
    const idsAt = at + plan.idEndsAt + 4 * size
    this.#gather(memory, idsAt, 0, size, idBytes)
    zero(memory, idsAt + end, at + (plan.payloadEndsAt || plan.totalBytes))
  }

  #writePayloads(plan: BatchPlan, memory: ArrayBuffer, at: number): void {
    const { byteOffset, idBytes, payloadBytes } = this.#rows
    const { size } = plan
    const ends = new Uint32Array(memory, at + plan.payloadEndsAt, size)
    let end = 0
    for (let row = 0; row < size; row++) {
      ends[row] = end += payloadBytes[row]
      byteOffset[row] += idBytes[row]
    }
    const payloadsAt = at + plan.payloadEndsAt + 4 * size
    this.#gather(memory, payloadsAt, 0, size, payloadBytes)
    zero(memory, payloadsAt + end, at + plan.totalBytes)
  }

  #gather(memory: ArrayBuffer, at: number, stride: number, rows: number, bytes: Uint32Array): void {
    const { source, byteOffset } = this.#rows
    gatherRows(memory, at, stride, rows, this.#sources, source, byteOffset, bytes)
  }

  /** Ragged rows: an item without tokens takes its length in zeros, so that offsets stay right. */
  #gatherWithZeros(memory: ArrayBuffer, at: number, lengths: Int32Array): void {
    const { source, byteOffset } = this.#rows
    const longest = lengths.reduce((longest, length) => Math.max(longest, length), 0)
    if (this.#zeros.byteLength < 4 * longest) this.#zeros = new ArrayBuffer(4 * longest)
    const sources = [...this.#sources, this.#zeros]
    const bytes = Uint32Array.from(lengths, (length) => 4 * length)
    const isEmpty = (row: number) => this.#rows.tokenBytes[row] === 0
    const from = source.map((index, row) => (isEmpty(row) ? this.#sources.length : index))
    const offset = byteOffset.map((byte, row) => (isEmpty(row) ? 0 : byte))
    gatherRows(memory, at, 0, lengths.length, sources, from, offset, bytes)
  }

  /** Most batches draw on a few buffers, so each is handed over once. */
  #source(buffer: ArrayBuffer): number {
    let index = this.#sourceOfBuffer.get(buffer)
    if (index === undefined) {
      index = this.#sources.push(buffer) - 1
      this.#sourceOfBuffer.set(buffer, index)
    }
    return index
  }
}

/** Padding between sections, so that equal batches are equal bytes. */
function zero(memory: ArrayBuffer, from: number, to: number): void {
  if (to > from) new Uint8Array(memory, from, to - from).fill(0)
}

/** An upper bound of the bytes of a batch under a contract, its ids as long as they may be. */
export function largestBatchBytes(
  contract: {
    readonly batchSize: number
    /** Token ids that it sends, padding with them. */
    readonly tokens: number
  },
  idBytesMax: number,
): number {
  return BATCH_HEADER_BYTES + 64 + 4 * contract.tokens + contract.batchSize * (8 + idBytesMax)
}

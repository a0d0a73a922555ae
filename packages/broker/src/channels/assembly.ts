// Lays a decided batch out where the consumer will read it: token rows, ids and payloads go from the
// arenas straight into the ring or the frame, by one native call each. Per batch it makes a few
// views; per item it allocates nothing.
import {
  BATCH_HEADER_BYTES,
  type BatchPlan,
  type Layout,
  planBatch,
  writeBatchHeader,
} from '@fabric/protocol'
import { gatherRows } from '@fabric/shm-ring'
import type { DispatchEffect, ItemView } from '../core/types.js'
import type { Channel } from './channel.js'

/** What the assembly needs of the core's item table. */
export type ItemSource = Pick<
  ItemView,
  | 'length'
  | 'segmentBytes'
  | 'tokensOffset'
  | 'tokensBytes'
  | 'idOffset'
  | 'idBytes'
  | 'payloadOffset'
  | 'payloadBytes'
>

const SCRATCH_ITEMS = 1024

export class Assembler {
  #rows = SCRATCH_ITEMS
  /** Place of each row's segment in `#sources`, and where its bytes lie in it. */
  #sourceIndex = new Uint32Array(SCRATCH_ITEMS)
  #byteOffset = new Uint32Array(SCRATCH_ITEMS)
  #byteLength = new Uint32Array(SCRATCH_ITEMS)
  #sources: ArrayBuffer[] = []
  readonly #sourceOfSegment = new Map<Uint8Array, number>()
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
    try {
      writeBatchHeader(
        space.memory,
        space.byteOffset,
        {
          batch: effect.batch,
          brokerLife: this.brokerLife,
          model: effect.model,
          attempt: effect.attempt,
        },
        plan,
      )
      this.#writeTokens(effect, plan, space.memory, space.byteOffset)
      this.#writeIds(effect, plan, space.memory, space.byteOffset)
      if (plan.payloadBytes !== null)
        this.#writePayloads(effect, plan, space.memory, space.byteOffset)
    } catch (error) {
      space.abort()
      throw error
    }
    space.commit()
    return plan.totalBytes
  }

  #plan(effect: DispatchEffect, layout: Layout): BatchPlan {
    const { items } = this
    let idBytes = 0
    let payloadBytes = 0
    for (let row = 0; row < effect.size; row++) {
      const slot = effect.items[row]
      idBytes += items.idBytes(slot)
      payloadBytes += items.payloadBytes(slot)
    }
    return planBatch({
      layout,
      size: effect.size,
      paddedLength: layout === 'padded' ? effect.paddedLength : 0,
      actualTokens: effect.actualTokens,
      idBytes,
      payloadBytes: payloadBytes > 0 ? payloadBytes : null,
    })
  }

  #writeTokens(effect: DispatchEffect, plan: BatchPlan, memory: ArrayBuffer, at: number): void {
    const { items } = this
    const { size } = effect
    this.#reserve(size)
    this.#sources = []
    this.#sourceOfSegment.clear()
    const lengths = new Int32Array(memory, at + plan.lengthsAt, size)
    for (let row = 0; row < size; row++) {
      const slot = effect.items[row]
      lengths[row] = items.length(slot)
      this.#sourceIndex[row] = this.#source(items.segmentBytes(slot))
      this.#byteOffset[row] = items.tokensOffset(slot)
      this.#byteLength[row] = items.tokensBytes(slot)
      if (plan.layout === 'ragged' && this.#byteLength[row] === 0) this.#useZeros(row, lengths[row])
    }
    zero(memory, at + plan.lengthsAt + 4 * size, at + plan.inputIdsAt)
    const stride = plan.layout === 'padded' ? 4 * plan.paddedLength : 0
    this.#gather(memory, at + plan.inputIdsAt, stride, size)
  }

  #writeIds(effect: DispatchEffect, plan: BatchPlan, memory: ArrayBuffer, at: number): void {
    const { items } = this
    const { size } = effect
    const ends = new Uint32Array(memory, at + plan.idEndsAt, size)
    let end = 0
    for (let row = 0; row < size; row++) {
      const slot = effect.items[row]
      end += items.idBytes(slot)
      ends[row] = end
      this.#sourceIndex[row] = this.#source(items.segmentBytes(slot))
      this.#byteOffset[row] = items.idOffset(slot)
      this.#byteLength[row] = items.idBytes(slot)
    }
    const idsAt = at + plan.idEndsAt + 4 * size
    this.#gather(memory, idsAt, 0, size)
    zero(memory, idsAt + end, at + (plan.payloadEndsAt || plan.totalBytes))
  }

  #writePayloads(effect: DispatchEffect, plan: BatchPlan, memory: ArrayBuffer, at: number): void {
    const { items } = this
    const { size } = effect
    const ends = new Uint32Array(memory, at + plan.payloadEndsAt, size)
    let end = 0
    for (let row = 0; row < size; row++) {
      const slot = effect.items[row]
      const bytes = items.payloadBytes(slot)
      end += bytes
      ends[row] = end
      this.#byteOffset[row] = items.payloadOffset(slot)
      this.#byteLength[row] = bytes
    }
    const payloadsAt = at + plan.payloadEndsAt + 4 * size
    this.#gather(memory, payloadsAt, 0, size)
    zero(memory, payloadsAt + end, at + plan.totalBytes)
  }

  #gather(memory: ArrayBuffer, at: number, stride: number, rows: number): void {
    gatherRows(
      memory,
      at,
      stride,
      rows,
      this.#sources,
      this.#sourceIndex,
      this.#byteOffset,
      this.#byteLength,
    )
  }

  /** Most batches draw on a few segments, so each is handed over once. */
  #source(segment: Uint8Array): number {
    let index = this.#sourceOfSegment.get(segment)
    if (index === undefined) {
      index = this.#sources.push(segment.buffer as ArrayBuffer) - 1
      this.#sourceOfSegment.set(segment, index)
    }
    return index
  }

  #useZeros(row: number, length: number): void {
    if (this.#zeros.byteLength < 4 * length) this.#zeros = new ArrayBuffer(8 * length)
    this.#sourceIndex[row] = this.#sources.push(this.#zeros) - 1
    this.#byteOffset[row] = 0
    this.#byteLength[row] = 4 * length
  }

  #reserve(rows: number): void {
    if (rows <= this.#rows) return
    this.#rows = 2 ** Math.ceil(Math.log2(rows))
    this.#sourceIndex = new Uint32Array(this.#rows)
    this.#byteOffset = new Uint32Array(this.#rows)
    this.#byteLength = new Uint32Array(this.#rows)
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
    readonly tokens: number
  },
  idBytesMax: number,
): number {
  return BATCH_HEADER_BYTES + 64 + 4 * contract.tokens + contract.batchSize * (8 + idBytesMax)
}

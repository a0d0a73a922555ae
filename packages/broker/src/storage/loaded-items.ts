// Collects items of blocks into the columns of one LoadedItems.
import type { ItemBlock } from './item-block.js'
import type { DiskShape, LoadedItems } from './store.js'

interface Row {
  readonly block: ItemBlock
  readonly row: number
  readonly tokenStart: number
}

export class LoadedItemsBuilder {
  readonly #rows: Row[] = []
  #tokens = 0
  #columnTokens = 0
  #idBytes = 0
  #payloadBytes = 0
  #haveDeadline = false
  #block: ItemBlock | null = null
  /** Of #block: where tokens of `#nextRow` begin. */
  #tokenStart = 0
  #nextRow = 0

  constructor(
    readonly job: number,
    readonly shape: DiskShape,
  ) {}

  get count(): number {
    return this.#rows.length
  }

  /** Whether the item would be too much. */
  isFull(block: ItemBlock, row: number, tokens: number, maxBytes: number): boolean {
    if (this.#tokens >= tokens) return true
    const payload = payloadBytesAt(block, row)
    const bytes = payload > 0 ? payload : 4 * block.lengths[row]
    return 4 * this.#columnTokens + this.#payloadBytes + this.#idBytes + bytes > maxBytes
  }

  /** Rows of a block are added in growing order. */
  add(block: ItemBlock, row: number): void {
    if (this.#block !== block) {
      this.#block = block
      this.#tokenStart = 0
      this.#nextRow = 0
    }
    for (; this.#nextRow < row; this.#nextRow++)
      if (payloadBytesAt(block, this.#nextRow) === 0)
        this.#tokenStart += block.lengths[this.#nextRow]
    this.#rows.push({ block, row, tokenStart: this.#tokenStart })
    const payload = payloadBytesAt(block, row)
    this.#tokens += block.lengths[row]
    this.#payloadBytes += payload
    this.#haveDeadline ||= (block.deadlineMs?.[row] ?? 0) > 0
    if (payload === 0) this.#columnTokens += block.lengths[row]
    this.#idBytes += block.idEnds[row] - startOf(block.idEnds, row)
  }

  columns(): LoadedItems {
    const count = this.#rows.length
    const model = new Int32Array(count).fill(this.shape.model)
    const lengths = new Int32Array(count)
    const sequences = new Float64Array(count)
    const acceptedAtMs = new Float64Array(count)
    const tokens = new Int32Array(this.#columnTokens)
    const ids = new Uint8Array(this.#idBytes)
    const idEnds = new Uint32Array(count)
    const payloads = this.#payloadBytes > 0 ? new Uint8Array(this.#payloadBytes) : null
    const payloadEnds = payloads === null ? null : new Uint32Array(count)
    const deadlineMs = this.#haveDeadline ? new Int32Array(count) : null
    let token = 0
    let id = 0
    let payload = 0
    this.#rows.forEach(({ block, row, tokenStart }, i) => {
      lengths[i] = block.lengths[row]
      sequences[i] = block.firstSequence + block.sequenceDeltas[row]
      acceptedAtMs[i] = block.acceptedAtMs
      if (deadlineMs !== null) deadlineMs[i] = block.deadlineMs?.[row] ?? 0
      const idStart = startOf(block.idEnds, row)
      ids.set(block.ids.subarray(idStart, block.idEnds[row]), id)
      id += block.idEnds[row] - idStart
      idEnds[i] = id
      const ofPayload = payloadBytesAt(block, row)
      if (ofPayload === 0) {
        tokens.set(block.tokens.subarray(tokenStart, tokenStart + lengths[i]), token)
        token += lengths[i]
      } else {
        const end = block.payloadEnds![row]
        payloads!.set(block.payloads!.subarray(end - ofPayload, end), payload)
        payload += ofPayload
      }
      if (payloadEnds !== null) payloadEnds[i] = payload
    })
    return {
      shape: this.shape,
      block: {
        job: this.job,
        count,
        model,
        lengths,
        tokens,
        ids,
        idEnds,
        payloads,
        payloadEnds,
        deadlineMs,
      },
      sequences,
      acceptedAtMs,
    }
  }
}

const startOf = (ends: Uint32Array, row: number) => (row === 0 ? 0 : ends[row - 1])

const payloadBytesAt = ({ payloadEnds }: ItemBlock, row: number) =>
  payloadEnds === null ? 0 : payloadEnds[row] - startOf(payloadEnds, row)

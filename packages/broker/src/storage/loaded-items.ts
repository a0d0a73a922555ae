// Collects items of blocks into the columns of one LoadedItems. Rows that follow each other in a block
// are copied at once: their tokens, payloads and ids follow each other there too.
import type { ItemBlock } from './item-block.js'
import type { DiskShape, LoadedItems } from './store.js'

export type Allocate = (bytes: number) => ArrayBufferLike

/** Rows [first, end) of a block. */
interface Run {
  readonly block: ItemBlock
  readonly first: number
  end: number
  readonly tokenStart: number
  tokenEnd: number
}

export class LoadedItemsBuilder {
  readonly #runs: Run[] = []
  #count = 0
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
    return this.#count
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
    const payload = payloadBytesAt(block, row)
    const tokens = payload === 0 ? block.lengths[row] : 0
    const tokenEnd = this.#tokenStart + tokens
    const last = this.#runs.at(-1)
    if (last !== undefined && last.block === block && last.end === row) {
      last.end = row + 1
      last.tokenEnd = tokenEnd
    } else {
      this.#runs.push({ block, first: row, end: row + 1, tokenStart: this.#tokenStart, tokenEnd })
    }
    this.#count += 1
    this.#tokens += block.lengths[row]
    this.#payloadBytes += payload
    this.#haveDeadline ||= (block.deadlineMs?.[row] ?? 0) > 0
    this.#columnTokens += tokens
    this.#idBytes += block.idEnds[row] - startOf(block.idEnds, row)
  }

  /** Views of one buffer. @param allocate at least so many bytes, whatever stands in them. */
  columns(allocate: Allocate = (bytes) => new ArrayBuffer(bytes)): LoadedItems {
    const count = this.#count
    const withPayloads = this.#payloadBytes > 0
    const columns = 3 + Number(withPayloads) + Number(this.#haveDeadline)
    const tokensAt = 16 * count + 4 * columns * count
    const payloadsAt = tokensAt + 4 * this.#columnTokens
    const idsAt = payloadsAt + this.#payloadBytes
    const buffer = allocate(idsAt + this.#idBytes)
    const columnAt = (index: number) => 16 * count + 4 * index * count
    const loaded = {
      sequences: new Float64Array(buffer, 0, count),
      acceptedAtMs: new Float64Array(buffer, 8 * count, count),
      lengths: new Int32Array(buffer, columnAt(0), count),
      model: new Int32Array(buffer, columnAt(1), count).fill(this.shape.model),
      idEnds: new Uint32Array(buffer, columnAt(2), count),
      payloadEnds: withPayloads ? new Uint32Array(buffer, columnAt(3), count) : null,
      deadlineMs: this.#haveDeadline ? new Int32Array(buffer, columnAt(columns - 1), count) : null,
      tokens: new Int32Array(buffer, tokensAt, this.#columnTokens),
      payloads: withPayloads ? new Uint8Array(buffer, payloadsAt, this.#payloadBytes) : null,
      ids: new Uint8Array(buffer, idsAt, this.#idBytes),
    }
    const place: Place = { row: 0, token: 0, payload: 0, id: 0 }
    for (const run of this.#runs) copyRun(run, loaded, place)
    const { sequences, acceptedAtMs, ...block } = loaded
    return { shape: this.shape, block: { job: this.job, count, ...block }, sequences, acceptedAtMs }
  }
}

type Columns = Pick<LoadedItems, 'sequences' | 'acceptedAtMs'> &
  Omit<LoadedItems['block'], 'job' | 'count'>

/** Where the next run goes. */
interface Place {
  row: number
  token: number
  payload: number
  id: number
}

function copyRun({ block, first, end, tokenStart, tokenEnd }: Run, to: Columns, at: Place): void {
  const idStart = startOf(block.idEnds, first)
  const payloadStart = block.payloadEnds === null ? 0 : startOf(block.payloadEnds, first)
  for (let row = first, i = at.row; row < end; row++, i++) {
    to.lengths[i] = block.lengths[row]
    to.sequences[i] = block.firstSequence + block.sequenceDeltas[row]
    to.acceptedAtMs[i] = block.acceptedAtMs
    to.idEnds[i] = at.id + block.idEnds[row] - idStart
    if (to.deadlineMs != null) to.deadlineMs[i] = block.deadlineMs?.[row] ?? 0
    if (to.payloadEnds !== null)
      to.payloadEnds[i] = at.payload + (block.payloadEnds?.[row] ?? 0) - payloadStart
  }
  const ids = block.ids.subarray(idStart, block.idEnds[end - 1])
  to.ids.set(ids, at.id)
  to.tokens.set(block.tokens.subarray(tokenStart, tokenEnd), at.token)
  at.row += end - first
  at.id += ids.length
  at.token += tokenEnd - tokenStart
  if (block.payloadEnds === null) return
  const payloads = block.payloads!.subarray(payloadStart, block.payloadEnds[end - 1])
  to.payloads?.set(payloads, at.payload)
  at.payload += payloads.length
}

const startOf = (ends: Uint32Array, row: number) => (row === 0 ? 0 : ends[row - 1])

const payloadBytesAt = ({ payloadEnds }: ItemBlock, row: number) =>
  payloadEnds === null ? 0 : payloadEnds[row] - startOf(payloadEnds, row)

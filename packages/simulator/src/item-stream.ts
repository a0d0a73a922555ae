// The items of one submitMany or trace on their way into the core, in blocks of what is due.
import type { SubmitBlock } from '@fabric/core'
import type { Source } from './sources.js'

/** Items of one submission at most: a client's request holds about as many. */
const BLOCK_ITEMS = 1024
/** `m` and the digits of a number. */
const ID_BYTES_MAX = 17

type Writable<T> = { -readonly [K in keyof T]: T[K] }

export class ItemStream {
  /** Read from the source and not yet accepted or refused for good. */
  #models = new Int32Array(BLOCK_ITEMS)
  #lengths = new Int32Array(BLOCK_ITEMS)
  #from = 0
  #to = 0
  #number: number
  readonly #block: Writable<SubmitBlock>

  constructor(
    private readonly source: Source,
    firstNumber: number,
    job: number,
    /** While the queue is full, as a client does; else what finds no room is refused. */
    readonly waits: boolean,
    deadlineMs: number | undefined,
    maxWaitMs: number | undefined,
  ) {
    this.#number = firstNumber
    this.#block = {
      job,
      count: 0,
      model: this.#models,
      lengths: this.#lengths,
      tokens: new Int32Array(0),
      ids: new Uint8Array(BLOCK_ITEMS * ID_BYTES_MAX),
      idEnds: new Uint32Array(BLOCK_ITEMS),
      payloads: null,
      payloadEnds: null,
      deadlineMs: deadlineMs === undefined ? null : new Int32Array(BLOCK_ITEMS).fill(deadlineMs),
      maxWaitMs: maxWaitMs === undefined ? null : new Int32Array(BLOCK_ITEMS).fill(maxWaitMs),
    }
  }

  /** When it has something to submit; Infinity when it is at its end. */
  get nextAtNs(): number {
    return this.#from < this.#to ? 0 : this.source.nextAtNs
  }

  /** The next block of items that are due, or null. It is this stream's own, used anew each time. */
  next(nowNs: number): SubmitBlock | null {
    if (this.#from === this.#to) this.#read(nowNs)
    const count = this.#to - this.#from
    if (count === 0) return null
    const block = this.#block
    block.count = count
    block.model = this.#models.subarray(this.#from, this.#to)
    block.lengths = this.#lengths.subarray(this.#from, this.#to)
    let end = 0
    for (let i = 0; i < count; i++) {
      end = writeId(block.ids, end, this.#number + i)
      block.idEnds[i] = end
    }
    return block
  }

  nameOf(place: number): string {
    return `m${this.#number + place}`
  }

  /** So many items of the block were answered for good. */
  consume(count: number): void {
    this.#from += count
    this.#number += count
  }

  #read(nowNs: number): void {
    const { source } = this
    this.#from = 0
    this.#to = 0
    while (this.#to < BLOCK_ITEMS && source.nextAtNs <= nowNs) {
      this.#models[this.#to] = source.model
      this.#lengths[this.#to] = source.length
      this.#to++
      source.advance()
    }
  }
}

/** Writes `m` and the number; answers where it ends. */
function writeId(bytes: Uint8Array, at: number, number: number): number {
  let digits = 1
  for (let bound = 10; number >= bound; bound *= 10) digits++
  bytes[at] = 109
  let rest = number
  for (let i = at + digits; i > at; i--) {
    const tens = Math.floor(rest / 10)
    bytes[i] = 48 + rest - tens * 10
    rest = tens
  }
  return at + 1 + digits
}

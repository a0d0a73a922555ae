// Memory that two threads share: the caller's thread fills a buffer, the writing thread reads it and gives
// it back by its number. A buffer that is transferred instead costs more than filling it: both threads
// count its bytes as garbage to come, and collect all the more often.

import { isFor, sizeFor } from './buffer-pool.js'

/** A buffer in a message. */
export interface LentBuffer {
  /** Null: of this message alone. */
  readonly number: number | null
  /** Null: the reader has seen the number before. */
  readonly memory: SharedArrayBuffer | null
}

interface Lent {
  readonly message: LentBuffer
  readonly memory: SharedArrayBuffer
}

/** Of the thread that fills buffers. */
export class SharedBuffers {
  readonly #memory: SharedArrayBuffer[] = []
  readonly #free: number[] = []
  #bytes = 0

  /** @param maxBytes of the buffers that are kept; what is needed beyond is made for one message. */
  constructor(readonly maxBytes: number) {}

  /** A buffer of at least so many bytes, with whatever its last user left in it. */
  lend(bytes: number): Lent {
    const size = sizeFor(bytes)
    // The last one given back is the likeliest to be in the processor's cache.
    for (let i = this.#free.length - 1; i >= 0; i--) {
      const number = this.#free[i]
      const memory = this.#memory[number]
      if (!isFor(memory.byteLength, size)) continue
      this.#free.splice(i, 1)
      return { message: { number, memory: null }, memory }
    }
    const memory = new SharedArrayBuffer(size)
    if (this.#bytes + size > this.maxBytes) return { message: { number: null, memory }, memory }
    this.#bytes += size
    const number = this.#memory.push(memory) - 1
    return { message: { number, memory }, memory }
  }

  giveBack(numbers: readonly number[]): void {
    this.#free.push(...numbers)
  }
}

/** Of the thread that reads them. */
export class BorrowedBuffers {
  readonly #memory = new Map<number, SharedArrayBuffer>()
  /** Read, and not given back yet. */
  #read: number[] = []

  /** What the message brought. */
  open({ number, memory }: LentBuffer): SharedArrayBuffer {
    if (number === null) return memory!
    if (memory !== null) this.#memory.set(number, memory)
    return this.#memory.get(number)!
  }

  /** It has been read. */
  close({ number }: LentBuffer): void {
    if (number !== null) this.#read.push(number)
  }

  /** Numbers to be given back. */
  takeRead(): number[] {
    const read = this.#read
    this.#read = []
    return read
  }
}

// Memory that is used again. A buffer of its own for each submission costs more than filling it: the
// kernel clears its pages as they are first touched, and several threads then free it.

const SMALLEST_BYTES = 4096
const SLACK = 4

export class BufferPool {
  readonly #free: ArrayBuffer[] = []
  #freeBytes = 0

  /** @param maxFreeBytes what is given back beyond it is left to the garbage collector. */
  constructor(readonly maxFreeBytes: number) {}

  /** A buffer of at least so many bytes, with whatever its last user left in it. */
  take(bytes: number): ArrayBuffer {
    const size = sizeFor(bytes)
    // The last one given back is the likeliest to be in the processor's cache.
    for (let i = this.#free.length - 1; i >= 0; i--) {
      const buffer = this.#free[i]
      if (!isFor(buffer.byteLength, size)) continue
      this.#free.splice(i, 1)
      this.#freeBytes -= buffer.byteLength
      return buffer
    }
    return new ArrayBuffer(size)
  }

  give(buffer: ArrayBuffer): void {
    if (this.#freeBytes + buffer.byteLength > this.maxFreeBytes) return
    this.#free.push(buffer)
    this.#freeBytes += buffer.byteLength
  }
}

/** A buffer is taken for something that much smaller, rather than a new one made. */
export const isFor = (bufferBytes: number, size: number): boolean =>
  bufferBytes >= size && bufferBytes <= SLACK * size

/** Of a new buffer for so many bytes. */
export function sizeFor(bytes: number): number {
  let size = SMALLEST_BYTES
  while (size < bytes) size *= 2
  return size
}

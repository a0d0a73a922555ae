// Reads blocks from the segments of the log. Each thread has one of its own, with a few files open and memory
// that is used again: blocks are the most of what is read, and each would be garbage soon.
import { closeSync, openSync, readSync } from 'node:fs'
import type { BlockPlace } from './block-row.js'
import { BufferPool } from './buffer-pool.js'
import { segmentPath } from './segment-file.js'

const FILES_OPEN_MAX = 64
const POOL_BYTES_MAX = 8 * 2 ** 20

export class BlockReader {
  /** The one that was used last stands last. */
  readonly #files = new Map<number, number>()
  readonly #pool = new BufferPool(POOL_BYTES_MAX)

  constructor(readonly dataDir: string) {}

  /** The caller's until it releases them; null: the file does not hold them, or cannot be read. */
  read({ segment, offset, bytes }: BlockPlace): Uint8Array | null {
    const file = this.#open(segment)
    if (file === null) return null
    const block = new Uint8Array(this.#pool.take(bytes), 0, bytes)
    try {
      for (let at = 0; at < bytes; ) {
        const read = readSync(file, block, at, bytes - at, offset + at)
        if (read === 0) return null
        at += read
      }
      return block
    } catch {
      // A sector that the disk cannot read: the block is damaged.
      return null
    }
  }

  /** Nobody looks at the bytes any more. */
  release(bytes: Uint8Array): void {
    this.#pool.give(bytes.buffer as ArrayBuffer)
  }

  /** A removed file that stays open keeps its room on the disk. */
  forget(segment: number): void {
    const file = this.#files.get(segment)
    if (file === undefined) return
    this.#files.delete(segment)
    closeSync(file)
  }

  close(): void {
    for (const segment of this.#files.keys()) this.forget(segment)
  }

  #open(segment: number): number | null {
    let file = this.#files.get(segment)
    if (file === undefined) {
      try {
        file = openSync(segmentPath(this.dataDir, segment), 'r')
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
        throw error
      }
      if (this.#files.size >= FILES_OPEN_MAX) {
        const [oldest] = this.#files.keys()
        this.forget(oldest)
      }
    } else this.#files.delete(segment)
    this.#files.set(segment, file)
    return file
  }
}

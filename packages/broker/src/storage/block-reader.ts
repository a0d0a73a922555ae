// Reads blocks from the segments of the log. Each thread has one of its own, with a few files open.
import { closeSync, openSync, readSync } from 'node:fs'
import type { BlockPlace } from './block-row.js'
import { segmentPath } from './segment-file.js'

const FILES_OPEN_MAX = 64

export class BlockReader {
  /** The one that was used last stands last. */
  readonly #files = new Map<number, number>()

  constructor(readonly dataDir: string) {}

  /** The caller's own bytes; null: the file does not hold them, or cannot be read. */
  read({ segment, offset, bytes }: BlockPlace): Uint8Array | null {
    const file = this.#open(segment)
    if (file === null) return null
    const block = new Uint8Array(bytes)
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

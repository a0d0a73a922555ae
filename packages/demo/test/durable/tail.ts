// What is appended to a file by a process that may be killed while it writes.
import { closeSync, openSync, readSync } from 'node:fs'

const READ_BYTES = 1 << 16
const NEWLINE = 10

export class Tail {
  /** Behind the last whole line: what follows may be torn, and then is written anew. */
  #at = 0

  constructor(readonly path: string) {}

  /** Whole lines that have come since the last call; none while there is no file. */
  read(): string[] {
    let file: number
    try {
      file = openSync(this.path, 'r')
    } catch {
      return []
    }
    try {
      return this.#readFrom(file)
    } finally {
      closeSync(file)
    }
  }

  #readFrom(file: number): string[] {
    const lines: string[] = []
    for (let room = READ_BYTES; ; ) {
      const piece = Buffer.allocUnsafe(room)
      const bytes = readSync(file, piece, 0, room, this.#at)
      const end = piece.subarray(0, bytes).lastIndexOf(NEWLINE)
      if (end >= 0) {
        lines.push(...piece.toString('utf8', 0, end).split('\n'))
        this.#at += end + 1
      } else if (bytes < room) return lines
      else room *= 2
    }
  }
}

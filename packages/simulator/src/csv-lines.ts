// Lines of a file, one at a time, in bounded memory. Synchronous: the simulation is one loop.
import { closeSync, openSync, readSync } from 'node:fs'

const CHUNK_BYTES = 1 << 18
/** A line longer than this is no line of a trace. */
const LINE_BYTES_MAX = 1 << 20

export class CsvLines {
  #file: number
  readonly #buffer = Buffer.alloc(CHUNK_BYTES)
  #text = ''
  #at = 0
  #ended = false
  /** Number of the line that `next` gave last; the first is 1. */
  number = 0

  constructor(path: string) {
    this.#file = openSync(path, 'r')
  }

  /** The next line without its end, or null after the last one. */
  next(): string | null {
    for (;;) {
      const end = this.#text.indexOf('\n', this.#at)
      if (end >= 0) return this.#give(end, end + 1)
      if (this.#ended) {
        return this.#at < this.#text.length
          ? this.#give(this.#text.length, this.#text.length)
          : null
      }
      this.#read()
    }
  }

  close(): void {
    if (this.#file >= 0) closeSync(this.#file)
    this.#file = -1
    this.#ended = true
  }

  #give(end: number, next: number): string {
    const from = this.#at
    const to = end > from && this.#text.charCodeAt(end - 1) === 13 ? end - 1 : end
    this.#at = next
    this.number++
    return this.#text.slice(from, to)
  }

  #read(): void {
    const count = readSync(this.#file, this.#buffer)
    // Numbers and commas are ASCII; what other columns hold is not looked at.
    const rest = this.#text.slice(this.#at)
    if (rest.length > LINE_BYTES_MAX) throw new Error(`line ${this.number + 1} is too long`)
    this.#text = rest + this.#buffer.toString('latin1', 0, count)
    this.#at = 0
    if (count === 0) this.close()
  }
}

/** Cells of one line; quotes may enclose commas. */
export function cellsOf(line: string): string[] {
  if (!line.includes('"')) return line.split(',')
  const cells: string[] = []
  let cell = ''
  let quoted = false
  for (const letter of line) {
    if (letter === '"') quoted = !quoted
    else if (letter === ',' && !quoted) {
      cells.push(cell)
      cell = ''
    } else cell += letter
  }
  cells.push(cell)
  return cells
}

// Lines to a stream that may be slower than we are, or close: gathered, and never more than a few
// chunks of them in memory.
import type { Writable } from 'node:stream'

const CHUNK_LETTERS = 1 << 16

export class LineOutput {
  /** Whoever read has gone (`| head`): there is nobody to write for. */
  isClosed = false
  isFull = false
  #gathered = ''

  constructor(private readonly stream: Writable) {
    stream.on('error', () => {
      this.isClosed = true
      this.isFull = false
    })
  }

  write(line: string): void {
    this.#gathered += `${line}\n`
    if (this.#gathered.length >= CHUNK_LETTERS) this.#flush()
  }

  async drained(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.stream.once('drain', resolve)
      this.stream.once('error', () => resolve())
      this.stream.once('close', resolve)
    })
    this.isFull = false
  }

  async end(): Promise<void> {
    const rest = this.#gathered
    this.#gathered = ''
    if (!this.isClosed)
      await new Promise<void>((resolve) => this.stream.write(rest, () => resolve()))
  }

  #flush(): void {
    if (!this.isClosed && !this.stream.write(this.#gathered)) this.isFull = true
    this.#gathered = ''
  }
}

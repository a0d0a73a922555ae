// Lines to a stream that may be slower than we are, or close: gathered, and never more than a few
// chunks of them in memory.
import type { Writable } from 'node:stream'
import { FabricError } from '@fabric/protocol'

const CHUNK_LETTERS = 1 << 16

export class LineOutput {
  /** Whoever read has gone (`| head`): there is nobody to write for. */
  isClosed = false
  isFull = false
  #gathered = ''
  #failure: Error | null = null
  #wake = (): void => {}

  constructor(private readonly stream: Writable) {
    stream.on('error', (error) => this.#end(error))
    stream.on('close', () => this.#end(null))
    stream.on('drain', () => {
      this.isFull = false
      this.#wake()
    })
  }

  write(line: string): void {
    this.#gathered += `${line}\n`
    if (this.#gathered.length >= CHUNK_LETTERS) this.#flush()
  }

  async drained(): Promise<void> {
    if (!this.isFull) return
    await new Promise<void>((resolve) => {
      this.#wake = resolve
    })
  }

  /** @throws FabricError FABRIC_OUTPUT when lines could not be written, such as to a full disk */
  async end(): Promise<void> {
    const rest = this.#gathered
    this.#gathered = ''
    if (!this.isClosed) {
      await new Promise<void>((resolve) => {
        this.stream.write(rest, (error) => {
          if (error) this.#end(error)
          resolve()
        })
      })
    }
    if (this.#failure === null) return
    const { message } = this.#failure
    throw new FabricError('FABRIC_OUTPUT', `the output cannot be written (${message})`, {
      cause: this.#failure,
    })
  }

  #flush(): void {
    if (!this.isClosed && !this.stream.write(this.#gathered)) this.isFull = true
    this.#gathered = ''
  }

  #end(error: Error | null): void {
    this.isClosed = true
    this.isFull = false
    if (error !== null && (error as NodeJS.ErrnoException).code !== 'EPIPE') this.#failure = error
    this.#wake()
  }
}

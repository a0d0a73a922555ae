// A file that only ever holds whole lines: they are gathered and written in large pieces. Writes are
// synchronous, so that whatever ends the process finds no half of a line under way.
import { closeSync, openSync, writeSync } from 'node:fs'
import { FabricError } from '@fabric/protocol'

const PIECE_BYTES = 256 << 10

export const outputError = (path: string, cause: unknown): FabricError => {
  const why = cause instanceof Error ? cause.message : String(cause)
  const message = `output ${path} cannot be written: ${why}`
  return new FabricError('FABRIC_USAGE', message, { field: 'output', cause })
}

export class LineFile {
  readonly #file: number
  readonly #piece = Buffer.allocUnsafe(PIECE_BYTES)
  #gathered = 0
  #writtenBytes = 0

  /** Begins the file anew. @throws FabricError when it cannot be opened. */
  constructor(readonly path: string) {
    try {
      this.#file = openSync(path, 'w')
    } catch (error) {
      throw outputError(path, error)
    }
  }

  /** Bytes of all lines so far, gathered ones included. */
  get bytes(): number {
    return this.#writtenBytes + this.#gathered
  }

  /** @returns the bytes that the line takes. */
  append(line: string): number {
    const bytes = Buffer.byteLength(line)
    if (this.#gathered + bytes > PIECE_BYTES) this.flush()
    if (bytes > PIECE_BYTES) this.write(Buffer.from(line))
    else this.#gathered += this.#piece.write(line, this.#gathered)
    return bytes
  }

  /** Lines as bytes, behind all that was appended. */
  write(lines: Uint8Array): void {
    this.flush()
    this.#write(lines)
  }

  flush(): void {
    if (this.#gathered === 0) return
    const piece = this.#piece.subarray(0, this.#gathered)
    this.#gathered = 0
    this.#write(piece)
  }

  close(): void {
    this.flush()
    closeSync(this.#file)
  }

  #write(bytes: Uint8Array): void {
    try {
      for (let at = 0; at < bytes.length; ) at += writeSync(this.#file, bytes, at)
    } catch (error) {
      throw outputError(this.path, error)
    }
    this.#writtenBytes += bytes.length
  }
}

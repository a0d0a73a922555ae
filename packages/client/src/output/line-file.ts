// A file that only ever holds whole lines: they are gathered and written in large pieces. Writes are
// synchronous, so that whatever ends the process finds no half of a line under way.
import { closeSync, fsyncSync, openSync, truncateSync, writeSync } from 'node:fs'
import { FabricError } from '@fabric/protocol'

const PIECE_BYTES = 256 << 10
/** Between two looks at a pipe whose reader is behind. */
const FULL_PIPE_MS = 2

export const outputError = (path: string, cause: unknown, kept?: string): FabricError => {
  const why = cause instanceof Error ? cause.message : String(cause)
  const said = why.startsWith('output ') ? why : `output ${path} cannot be written: ${why}`
  const message = kept === undefined ? said : `${said}; ${kept}`
  return new FabricError('FABRIC_OUTPUT', message, { field: 'output', cause })
}

export class LineFile {
  readonly #file: number
  readonly #piece = Buffer.allocUnsafe(PIECE_BYTES)
  #gathered = 0
  #writtenBytes = 0

  /**
   * Begins the file anew, or takes one that is open, or goes on behind its first `keptBytes`.
   * @throws FabricError when it cannot be opened.
   */
  constructor(
    readonly path: string,
    { file, keptBytes = 0 }: { readonly file?: number; readonly keptBytes?: number } = {},
  ) {
    try {
      if (keptBytes > 0) truncateSync(path, keptBytes)
      this.#file = file ?? openSync(path, keptBytes > 0 ? 'a' : 'w')
      this.#writtenBytes = keptBytes
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

  /** All lines are on the disk when it returns; not for pipes and devices. */
  sync(): void {
    this.flush()
    try {
      fsyncSync(this.#file)
    } catch (error) {
      throw outputError(this.path, error)
    }
  }

  close(): void {
    this.flush()
    closeSync(this.#file)
  }

  #write(bytes: Uint8Array): void {
    try {
      for (let at = 0; at < bytes.length; ) at += writeSome(this.#file, bytes, at)
    } catch (error) {
      throw outputError(this.path, error)
    }
    this.#writtenBytes += bytes.length
  }
}

/** @returns how many bytes were taken: 0, after a moment, when a pipe is full. */
function writeSome(file: number, bytes: Uint8Array, at: number): number {
  try {
    return writeSync(file, bytes, at)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, FULL_PIPE_MS)
    return 0
  }
}

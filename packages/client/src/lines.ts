// Cuts a stream of bytes into lines. A line may begin in one chunk and end many chunks later; only
// that line is held. Used for the broker's NDJSON and for input files.

const LINE_FEED = 10

export interface LineSplitterOptions {
  /** A longer line is passed on as null: memory stays bounded whatever a file holds. */
  readonly maxBytes?: number
}

export class LineSplitter {
  readonly #maxBytes: number
  #parts: Buffer[] = []
  #heldBytes = 0

  constructor({ maxBytes = Number.POSITIVE_INFINITY }: LineSplitterOptions = {}) {
    this.#maxBytes = maxBytes
  }

  /** The lines that end in `chunk`, without their line feeds. */
  push(chunk: Uint8Array): (string | null)[] {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    const lines: (string | null)[] = []
    let from = 0
    for (let to = bytes.indexOf(LINE_FEED); to >= 0; to = bytes.indexOf(LINE_FEED, from)) {
      this.#hold(bytes.subarray(from, to))
      lines.push(this.#take())
      from = to + 1
    }
    if (from < bytes.length) this.#hold(bytes.subarray(from))
    return lines
  }

  /** What stands behind the last line feed; undefined when nothing does. */
  end(): string | null | undefined {
    return this.#heldBytes === 0 ? undefined : this.#take()
  }

  #hold(part: Buffer): void {
    this.#heldBytes += part.length
    if (this.#heldBytes > this.#maxBytes) this.#parts = []
    else this.#parts.push(part)
  }

  #take(): string | null {
    const [parts, bytes] = [this.#parts, this.#heldBytes]
    this.#parts = []
    this.#heldBytes = 0
    if (bytes > this.#maxBytes) return null
    return parts.length === 1 ? parts[0].toString('utf8') : Buffer.concat(parts).toString('utf8')
  }
}

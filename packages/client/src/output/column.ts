// A growing column of numbers, in chunks: growth copies nothing, so memory never doubles for it.

type Numbers = Uint32Array | Float64Array

const CHUNK = 1 << 16

export class Column {
  readonly #chunks: (Numbers | undefined)[] = []

  constructor(readonly make: (length: number) => Numbers) {}

  /** 0 where nothing was set. */
  get(index: number): number {
    return this.#chunks[Math.floor(index / CHUNK)]?.[index % CHUNK] ?? 0
  }

  set(index: number, value: number): void {
    const at = Math.floor(index / CHUNK)
    let chunk = this.#chunks[at]
    if (chunk === undefined) {
      chunk = this.make(CHUNK)
      this.#chunks[at] = chunk
    }
    chunk[index % CHUNK] = value
  }
}

export const uint32Column = () => new Column((length) => new Uint32Array(length))
export const float64Column = () => new Column((length) => new Float64Array(length))

// Columns of the item table: typed arrays in chunks of equal size.
//
// Chunks instead of one array that doubles: growing never copies ten million rows inside one step,
// holds no half-empty tail, and a chunk whose rows are all free goes back to the process. One class
// per element type, so that the engine compiles each access for one kind of array.

export const CHUNK_SHIFT = 14
export const CHUNK_ROWS = 1 << CHUNK_SHIFT
const ROW_MASK = CHUNK_ROWS - 1
const NO_INT32 = new Int32Array(0)
const NO_FLOAT64 = new Float64Array(0)
const NO_UINT8 = new Uint8Array(0)

export class Int32Column {
  private readonly chunks: Int32Array[] = []

  get(row: number): number {
    return this.chunks[row >>> CHUNK_SHIFT][row & ROW_MASK]
  }

  set(row: number, value: number): void {
    this.chunks[row >>> CHUNK_SHIFT][row & ROW_MASK] = value
  }

  open(chunk: number): void {
    this.chunks[chunk] = new Int32Array(CHUNK_ROWS)
  }

  close(chunk: number): void {
    this.chunks[chunk] = NO_INT32
  }
}

export class Float64Column {
  private readonly chunks: Float64Array[] = []

  get(row: number): number {
    return this.chunks[row >>> CHUNK_SHIFT][row & ROW_MASK]
  }

  set(row: number, value: number): void {
    this.chunks[row >>> CHUNK_SHIFT][row & ROW_MASK] = value
  }

  open(chunk: number): void {
    this.chunks[chunk] = new Float64Array(CHUNK_ROWS)
  }

  close(chunk: number): void {
    this.chunks[chunk] = NO_FLOAT64
  }
}

export class Uint8Column {
  private readonly chunks: Uint8Array[] = []

  get(row: number): number {
    return this.chunks[row >>> CHUNK_SHIFT][row & ROW_MASK]
  }

  set(row: number, value: number): void {
    this.chunks[row >>> CHUNK_SHIFT][row & ROW_MASK] = value
  }

  open(chunk: number): void {
    this.chunks[chunk] = new Uint8Array(CHUNK_ROWS)
  }

  close(chunk: number): void {
    this.chunks[chunk] = NO_UINT8
  }
}

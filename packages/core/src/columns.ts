// Columns of the item table, in chunks of equal size. The fields of a row stand side by side: the items
// of a lane among many lie anywhere, and each row that leaves costs a cache miss, not one a column.
//
// Chunks instead of one array that doubles: growing never copies ten million rows inside one step,
// holds no half-empty tail, and a chunk whose rows are all free goes back to the process. One class
// per element type, so that the engine compiles each access for one kind of array.

export const CHUNK_SHIFT = 14
export const CHUNK_ROWS = 1 << CHUNK_SHIFT
const ROW_MASK = CHUNK_ROWS - 1

/** The bytes of the rows, as each column sees them. */
export class Rows {
  readonly float64: Float64Array[] = []
  readonly int32: Int32Array[] = []
  readonly uint16: Uint16Array[] = []
  readonly uint8: Uint8Array[] = []

  constructor(
    /** A multiple of 8. */
    readonly rowBytes: number,
  ) {}

  open(chunk: number): void {
    this.put(chunk, new ArrayBuffer(CHUNK_ROWS * this.rowBytes))
  }

  close(chunk: number): void {
    this.put(chunk, new ArrayBuffer(0))
  }

  private put(chunk: number, buffer: ArrayBuffer): void {
    this.float64[chunk] = new Float64Array(buffer)
    this.int32[chunk] = new Int32Array(buffer)
    this.uint16[chunk] = new Uint16Array(buffer)
    this.uint8[chunk] = new Uint8Array(buffer)
  }
}

/** The classes below differ in their kind of array alone. `byte`: where the field stands in a row. */
export class Int32Column {
  private readonly chunks: Int32Array[]
  private readonly stride: number
  private readonly at: number

  constructor(rows: Rows, byte: number) {
    this.chunks = rows.int32
    this.stride = rows.rowBytes >>> 2
    this.at = byte >>> 2
  }

  get(row: number): number {
    return this.chunks[row >>> CHUNK_SHIFT][(row & ROW_MASK) * this.stride + this.at]
  }

  set(row: number, value: number): void {
    this.chunks[row >>> CHUNK_SHIFT][(row & ROW_MASK) * this.stride + this.at] = value
  }
}

export class Float64Column {
  private readonly chunks: Float64Array[]
  private readonly stride: number
  private readonly at: number

  constructor(rows: Rows, byte: number) {
    this.chunks = rows.float64
    this.stride = rows.rowBytes >>> 3
    this.at = byte >>> 3
  }

  get(row: number): number {
    return this.chunks[row >>> CHUNK_SHIFT][(row & ROW_MASK) * this.stride + this.at]
  }

  set(row: number, value: number): void {
    this.chunks[row >>> CHUNK_SHIFT][(row & ROW_MASK) * this.stride + this.at] = value
  }
}

export class Uint16Column {
  private readonly chunks: Uint16Array[]
  private readonly stride: number
  private readonly at: number

  constructor(rows: Rows, byte: number) {
    this.chunks = rows.uint16
    this.stride = rows.rowBytes >>> 1
    this.at = byte >>> 1
  }

  get(row: number): number {
    return this.chunks[row >>> CHUNK_SHIFT][(row & ROW_MASK) * this.stride + this.at]
  }

  set(row: number, value: number): void {
    this.chunks[row >>> CHUNK_SHIFT][(row & ROW_MASK) * this.stride + this.at] = value
  }
}

export class Uint8Column {
  private readonly chunks: Uint8Array[]
  private readonly stride: number

  constructor(
    rows: Rows,
    private readonly at: number,
  ) {
    this.chunks = rows.uint8
    this.stride = rows.rowBytes
  }

  get(row: number): number {
    return this.chunks[row >>> CHUNK_SHIFT][(row & ROW_MASK) * this.stride + this.at]
  }

  set(row: number, value: number): void {
    this.chunks[row >>> CHUNK_SHIFT][(row & ROW_MASK) * this.stride + this.at] = value
  }
}

// Columns of the item table, in chunks of equal size. Fields that are read together stand side by side
// in a row: the items of a lane among many lie anywhere, and each of them costs a cache miss a row then,
// not one a column.
//
// Chunks instead of one array that doubles: growing never copies ten million rows inside one step,
// holds no half-empty tail, and a chunk whose rows are all free goes back. One class per element type,
// so that the engine compiles each access for one kind of array.

import type { Piece, Slabs } from './slabs.js'

export const CHUNK_SHIFT = 14
export const CHUNK_ROWS = 1 << CHUNK_SHIFT
export const ROW_MASK = CHUNK_ROWS - 1

/** The bytes of the rows, as each column sees them. */
export class Rows {
  readonly float64: Float64Array[] = []
  readonly int32: Int32Array[] = []
  readonly uint16: Uint16Array[] = []
  readonly uint8: Uint8Array[] = []
  private readonly pieces: (Piece | null)[] = []

  constructor(
    /** A multiple of 4, and of 8 where a field has 8. */
    readonly rowBytes: number,
    private readonly slabs: Slabs,
  ) {}

  open(chunk: number): void {
    const piece = this.slabs.take(CHUNK_ROWS * this.rowBytes)
    this.pieces[chunk] = piece
    this.view(chunk, piece.buffer, piece.byteOffset, CHUNK_ROWS * this.rowBytes)
  }

  close(chunk: number): void {
    const piece = this.pieces[chunk]
    if (piece == null) return
    this.pieces[chunk] = null
    this.view(chunk, NO_BYTES, 0, 0)
    this.slabs.give(piece)
  }

  isOpen(chunk: number): boolean {
    return this.pieces[chunk] != null
  }

  private view(chunk: number, buffer: ArrayBuffer, at: number, bytes: number): void {
    this.float64[chunk] = new Float64Array(buffer, at, bytes >>> 3)
    this.int32[chunk] = new Int32Array(buffer, at, bytes >>> 2)
    this.uint16[chunk] = new Uint16Array(buffer, at, bytes >>> 1)
    this.uint8[chunk] = new Uint8Array(buffer, at, bytes)
  }
}

const NO_BYTES = new ArrayBuffer(0)

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

/** Where most rows are 0: a chunk has memory from the first that is not. */
export class SparseColumn {
  private readonly rows: Rows
  private readonly values: Int32Column

  constructor(
    slabs: Slabs,
    /** 1 where the value is not 0. */
    private readonly isSet: Uint8Column,
  ) {
    this.rows = new Rows(4, slabs)
    this.values = new Int32Column(this.rows, 0)
  }

  get(row: number): number {
    return this.isSet.get(row) === 0 ? 0 : this.values.get(row)
  }

  set(row: number, value: number): void {
    this.isSet.set(row, value === 0 ? 0 : 1)
    if (value === 0) return
    if (!this.rows.isOpen(row >>> CHUNK_SHIFT)) this.rows.open(row >>> CHUNK_SHIFT)
    this.values.set(row, value)
  }

  close(chunk: number): void {
    this.rows.close(chunk)
  }
}

// An append made ready for the log: the accepted items as blocks by shape, in one buffer behind the room
// for its header.
import { SUBMIT_ACCEPTED } from '@fabric/core'
import { align8, appendHeaderBytes, type LoggedBlock } from './append-header.js'
import type { BufferPool } from './buffer-pool.js'
import type { AdmittedIds } from './id-index.js'
import {
  type BlockExtent,
  encodeBlock,
  type ItemColumns,
  nextBlock,
  tokensOfRun,
} from './item-block.js'
import { diskLength } from './layout.js'
import type { DiskShape } from './store.js'

export interface EncodedAppend {
  readonly job: number
  readonly accepted: number
  /** Sequences of the first and the last accepted item; 0 where none is. */
  readonly first: number
  readonly last: number
  readonly blocks: readonly LoggedBlock[]
  /** What goes into the log, one behind the other; the first begins with room for the header. */
  readonly parts: readonly Buffer[]
  /** Of all parts. */
  readonly bytes: number
  /** Some parts are views of the items' own memory, which must stay as it is until they are written. */
  readonly isBorrowing: boolean
  /** Of the pool; null where nothing is accepted. */
  readonly buffer: ArrayBuffer | null
}

interface Piece {
  readonly shape: DiskShape
  readonly rows: readonly number[]
  readonly from: number
  readonly extent: BlockExtent
}

/** Tokens that stand together are written from where they are; fewer are copied sooner than pointed at. */
const BORROWED_BYTES_MIN = 16 * 1024

const NOTHING: EncodedAppend = {
  job: 0,
  accepted: 0,
  first: 0,
  last: 0,
  blocks: [],
  parts: [],
  bytes: 0,
  isBorrowing: false,
  buffer: null,
}

export function encodeAppend(
  items: ItemColumns,
  { codes }: Pick<AdmittedIds, 'codes'>,
  acceptedAtMs: number,
  pool: BufferPool,
): EncodedAppend {
  const { job, sequences } = items
  const first = codes.indexOf(SUBMIT_ACCEPTED)
  if (first < 0) return { ...NOTHING, job }
  const pieces = piecesOf(items, codes)
  const headerBytes = appendHeaderBytes(pieces.length)
  const size = pieces.reduce((sum, { extent }) => sum + align8(extent.bytes), headerBytes)
  const buffer = pool.take(size)
  const parts = new Parts(buffer)
  const blocks: LoggedBlock[] = []
  let at = headerBytes
  let accepted = 0
  for (const piece of pieces) {
    const { rows, from, extent } = piece
    const isBorrowed = extent.isContiguous && 4 * extent.tokens >= BORROWED_BYTES_MIN
    const crc = encodeBlock(items, rows, from, extent, acceptedAtMs, buffer, at, !isBorrowed)
    blocks.push(blockOf(items, piece, at, crc))
    if (isBorrowed) {
      const tokens = tokensOfRun(items, rows[from], extent)
      parts.borrow(at + tokens.at, tokens.bytes)
    }
    const end = at + align8(extent.bytes)
    new Uint8Array(buffer, at + extent.bytes, end - at - extent.bytes).fill(0)
    at = end
    accepted += extent.count
  }
  const last = sequences[codes.lastIndexOf(SUBMIT_ACCEPTED)]
  return {
    job,
    accepted,
    first: sequences[first],
    last,
    blocks,
    parts: parts.upTo(size),
    bytes: size,
    isBorrowing: parts.isBorrowing,
    buffer,
  }
}

/** The buffer, with pieces of other memory in place of some of its own. */
class Parts {
  readonly #parts: Buffer[] = []
  #at = 0
  isBorrowing = false

  constructor(readonly buffer: ArrayBuffer) {}

  borrow(at: number, bytes: Buffer): void {
    this.#parts.push(Buffer.from(this.buffer, this.#at, at - this.#at), bytes)
    this.#at = at + bytes.byteLength
    this.isBorrowing = true
  }

  upTo(end: number): readonly Buffer[] {
    if (end > this.#at) this.#parts.push(Buffer.from(this.buffer, this.#at, end - this.#at))
    return this.#parts
  }
}

function blockOf(
  { lengths, sequences }: ItemColumns,
  { shape, rows, from, extent }: Piece,
  at: number,
  crc: number,
): LoggedBlock {
  const { count, haveDeadline, bytes } = extent
  let tokens = 0
  for (let i = from; i < from + count; i++) tokens += lengths[rows[i]]
  const firstSequence = sequences[rows[from]]
  return { shape, count, tokens, haveDeadline, firstSequence, at, bytes, crc }
}

function piecesOf(items: ItemColumns, codes: Uint8Array): Piece[] {
  const pieces: Piece[] = []
  const shape = onlyShape(items, codes)
  if (shape !== null) addPieces(pieces, items, shape, rowsUpTo(items.count), items.count)
  else
    for (const [model, lengths] of rowsByShape(items, codes))
      for (const [paddedLength, rows] of lengths)
        addPieces(pieces, items, { model, paddedLength }, rows, rows.length)
  return pieces
}

function addPieces(
  pieces: Piece[],
  items: ItemColumns,
  shape: DiskShape,
  rows: readonly number[],
  end: number,
): void {
  for (let from = 0; from < end; ) {
    const extent = nextBlock(items, rows, from, end)
    pieces.push({ shape, rows, from, extent })
    from += extent.count
  }
}

/** Of all the items, when all are accepted and have the same. */
function onlyShape({ count, model, lengths }: ItemColumns, codes: Uint8Array): DiskShape | null {
  const shape = { model: model[0], paddedLength: diskLength(lengths[0]) }
  for (let i = 0; i < count; i++) {
    const isSame = model[i] === shape.model && diskLength(lengths[i]) === shape.paddedLength
    if (!isSame || codes[i] !== SUBMIT_ACCEPTED) return null
  }
  return shape
}

/** 0, 1, 2 and so on: made once for the largest. */
const ROWS: number[] = []
function rowsUpTo(count: number): readonly number[] {
  while (ROWS.length < count) ROWS.push(ROWS.length)
  return ROWS
}

/** Accepted rows by model and padded length, in order of arrival. */
function rowsByShape(items: ItemColumns, codes: Uint8Array): Map<number, Map<number, number[]>> {
  const models = new Map<number, Map<number, number[]>>()
  for (let i = 0; i < items.count; i++) {
    if (codes[i] !== SUBMIT_ACCEPTED) continue
    let lengths = models.get(items.model[i])
    if (lengths === undefined) {
      lengths = new Map()
      models.set(items.model[i], lengths)
    }
    const padded = diskLength(items.lengths[i])
    const rows = lengths.get(padded)
    if (rows === undefined) lengths.set(padded, [i])
    else rows.push(i)
  }
  return models
}

// An append made ready for the log: the accepted items as blocks by shape, in one buffer behind the room
// for its header.
import { SUBMIT_ACCEPTED } from '@fabric/core'
import { align8, appendHeaderBytes, type LoggedBlock } from './append-header.js'
import type { BufferPool } from './buffer-pool.js'
import type { AdmittedIds } from './id-index.js'
import { type BlockExtent, encodeBlock, type ItemColumns, nextBlock } from './item-block.js'
import { diskLength } from './layout.js'
import type { DiskShape } from './store.js'

export interface EncodedAppend {
  readonly job: number
  readonly accepted: number
  /** Sequences of the first and the last accepted item; 0 where none is. */
  readonly first: number
  readonly last: number
  readonly blocks: readonly LoggedBlock[]
  /** View of `buffer`: what goes into the log, its header still to be written. Empty where nothing is accepted. */
  readonly bytes: Buffer
  /** Of the pool; null where nothing is accepted. */
  readonly buffer: ArrayBuffer | null
}

interface Piece {
  readonly shape: DiskShape
  readonly rows: readonly number[]
  readonly from: number
  readonly extent: BlockExtent
}

const NOTHING = Buffer.alloc(0)

export function encodeAppend(
  items: ItemColumns,
  { codes, bodies }: Pick<AdmittedIds, 'codes' | 'bodies'>,
  acceptedAtMs: number,
  pool: BufferPool,
): EncodedAppend {
  const { job, sequences } = items
  const first = codes.indexOf(SUBMIT_ACCEPTED)
  if (first < 0)
    return { job, accepted: 0, first: 0, last: 0, blocks: [], bytes: NOTHING, buffer: null }
  const pieces = piecesOf(items, codes)
  const headerBytes = appendHeaderBytes(pieces.length)
  const size = pieces.reduce((sum, { extent }) => sum + align8(extent.bytes), headerBytes)
  const buffer = pool.take(size)
  const bytes = Buffer.from(buffer, 0, size)
  let at = headerBytes
  let accepted = 0
  const blocks = pieces.map(({ shape, rows, from, extent }): LoggedBlock => {
    const { count, haveDeadline } = extent
    let tokens = 0
    for (let i = from; i < from + count; i++) tokens += items.lengths[rows[i]]
    const crc = encodeBlock(items, bodies, rows, from, extent, acceptedAtMs, buffer, at)
    const block = {
      shape,
      count,
      tokens,
      haveDeadline,
      firstSequence: sequences[rows[from]],
      at,
      bytes: extent.bytes,
      crc,
    }
    at += align8(extent.bytes)
    bytes.fill(0, block.at + extent.bytes, at)
    accepted += count
    return block
  })
  const last = sequences[codes.lastIndexOf(SUBMIT_ACCEPTED)]
  return { job, accepted, first: sequences[first], last, blocks, bytes, buffer }
}

function piecesOf(items: ItemColumns, codes: Uint8Array): Piece[] {
  const pieces: Piece[] = []
  for (const [model, lengths] of rowsByShape(items, codes)) {
    for (const [paddedLength, rows] of lengths) {
      for (let from = 0; from < rows.length; ) {
        const extent = nextBlock(items, rows, from)
        pieces.push({ shape: { model, paddedLength }, rows, from, extent })
        from += extent.count
      }
    }
  }
  return pieces
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

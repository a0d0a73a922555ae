// A batch as a rectangle, as engines without ragged kernels want it. A padded batch is one already;
// a ragged one is copied into a buffer of its own.
import type { Batch } from '../batches/batch.js'

export interface PaddedRows {
  readonly size: number
  readonly paddedLength: number
  /** size x paddedLength, row-major. */
  readonly inputIds: Int32Array
  readonly lengths: Int32Array
}

export function paddedRows(batch: Batch): PaddedRows {
  if (batch.offsets === null) return batch
  const { size, lengths, offsets } = batch
  let paddedLength = 0
  for (let i = 0; i < size; i++) paddedLength = Math.max(paddedLength, lengths[i])
  const inputIds = new Int32Array(size * paddedLength)
  for (let i = 0; i < size; i++)
    inputIds.set(batch.inputIds.subarray(offsets[i], offsets[i + 1]), i * paddedLength)
  return { size, paddedLength, inputIds, lengths }
}

/** Rows that hold a token the model has no vector for: index of the row, and which token. */
export function tokensOutside(rows: PaddedRows, vocabSize: number): ReadonlyMap<number, number> {
  const found = new Map<number, number>()
  for (let i = 0; i < rows.size; i++) {
    const start = i * rows.paddedLength
    for (let at = start; at < start + rows.lengths[i]; at++) {
      const token = rows.inputIds[at]
      if (token >= 0 && token < vocabSize) continue
      found.set(i, token)
      break
    }
  }
  return found
}

/** A copy in which the given rows hold zeros, so that their neighbours can still run. */
export function withoutRows(rows: PaddedRows, without: ReadonlyMap<number, unknown>): PaddedRows {
  const inputIds = rows.inputIds.slice()
  for (const i of without.keys())
    inputIds.fill(0, i * rows.paddedLength, (i + 1) * rows.paddedLength)
  return { size: rows.size, paddedLength: rows.paddedLength, lengths: rows.lengths, inputIds }
}

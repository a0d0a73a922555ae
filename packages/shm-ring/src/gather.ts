/** Packing the rows of a batch. */
import { gatherRowsInScript } from './gather-in-script.js'
import { native, ringSupport } from './native.js'

/**
 * Copies rows one below the other into `target`. Row r is sourceByteLength[r] bytes at
 * sourceByteOffset[r] of sources[sourceIndex[r]], filled up with zeros to rowStrideBytes; with
 * rowStrideBytes 0 rows follow each other without space. Throws RangeError before the first byte is
 * written if anything is out of bounds. Works everywhere: batches are packed for sockets too.
 */
export function gatherRows(
  target: ArrayBuffer,
  targetByteOffset: number,
  rowStrideBytes: number,
  rows: number,
  sources: readonly ArrayBuffer[],
  sourceIndex: Uint32Array,
  sourceByteOffset: Uint32Array,
  sourceByteLength: Uint32Array,
): void {
  const gather = ringSupport().supported ? native().gatherRows : gatherRowsInScript
  gather(
    target,
    targetByteOffset,
    rowStrideBytes,
    rows,
    sources,
    sourceIndex,
    sourceByteOffset,
    sourceByteLength,
  )
}

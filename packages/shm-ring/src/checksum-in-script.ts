import { crc32 } from 'node:zlib'

/**
 * crc32Rows() where no addon loads: the same checks in the same order as native/src/checksum.cpp, the same
 * CRCs.
 */
export function crc32RowsInScript(
  source: Uint8Array,
  rowByteOffset: Uint32Array,
  rowByteLength: Uint32Array,
  crcs: Uint32Array,
  rows: number,
): void {
  if (!Number.isSafeInteger(rows) || rows < 0)
    throw new RangeError(`rows must be a whole number, not ${rows}`)
  if (rows > Math.min(rowByteOffset.length, rowByteLength.length, crcs.length))
    throw new RangeError('rows is larger than the arrays that describe them')
  for (let row = 0; row < rows; row++) {
    const end = rowByteOffset[row]! + rowByteLength[row]!
    if (end > source.byteLength)
      throw new RangeError(
        `row ${row}: bytes ${rowByteOffset[row]} to ${end} of a source of ${source.byteLength}`,
      )
  }
  for (let row = 0; row < rows; row++) {
    const at = rowByteOffset[row]!
    crcs[row] = crc32(source.subarray(at, at + rowByteLength[row]!), crcs[row]!)
  }
}

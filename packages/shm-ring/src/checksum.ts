/** Checksums of the rows of a batch. */
import { crc32RowsInScript } from './checksum-in-script.js'
import { native, ringSupport } from './native.js'

/**
 * The CRC-32, as of zlib, of each of many rows of `source`, with one call: row r is rowByteLength[r] bytes
 * at rowByteOffset[r]. crcs[r] is that of the bytes before the row, 0 for none, and becomes that of them and
 * the row. Throws RangeError before it changes one if a row is out of bounds. Works everywhere.
 */
export function crc32Rows(
  source: Uint8Array,
  rowByteOffset: Uint32Array,
  rowByteLength: Uint32Array,
  crcs: Uint32Array,
  rows: number,
): void {
  const checksum = ringSupport().supported ? native().crc32Rows : crc32RowsInScript
  checksum(source, rowByteOffset, rowByteLength, crcs, rows)
}

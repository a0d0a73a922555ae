/**
 * gatherRows() where no addon loads: the same checks in the same order as native/src/gather.cpp, the
 * same bytes. Only batches that travel by sockets come through here.
 */
export function gatherRowsInScript(
  target: ArrayBuffer,
  targetByteOffset: number,
  rowStrideBytes: number,
  rows: number,
  sources: readonly ArrayBuffer[],
  sourceIndex: Uint32Array,
  sourceByteOffset: Uint32Array,
  sourceByteLength: Uint32Array,
): void {
  for (const value of [targetByteOffset, rowStrideBytes, rows])
    if (!Number.isSafeInteger(value) || value < 0)
      throw new RangeError(`offset, stride and rows must be whole numbers, not ${value}`)
  if (rows > Math.min(sourceIndex.length, sourceByteOffset.length, sourceByteLength.length))
    throw new RangeError('rows is larger than the arrays that describe them')
  if (targetByteOffset > target.byteLength)
    throw new RangeError("targetByteOffset is past the target's end")
  let packed = 0
  for (let row = 0; row < rows; row++) {
    const length = sourceByteLength[row]!
    const source = sources[sourceIndex[row]!]
    checkRow(row, sourceIndex[row]!, source, sourceByteOffset[row]!, length, rowStrideBytes)
    packed += length
  }
  const needed = rowStrideBytes === 0 ? packed : rows * rowStrideBytes
  if (needed > target.byteLength - targetByteOffset)
    throw new RangeError('the rows do not fit in the target')

  const bytes = new Uint8Array(target)
  let at = targetByteOffset
  for (let row = 0; row < rows; row++) {
    const length = sourceByteLength[row]!
    bytes.set(new Uint8Array(sources[sourceIndex[row]!]!, sourceByteOffset[row]!, length), at)
    if (rowStrideBytes > length) bytes.fill(0, at + length, at + rowStrideBytes)
    at += rowStrideBytes === 0 ? length : rowStrideBytes
  }
}

function checkRow(
  row: number,
  index: number,
  source: ArrayBuffer | undefined,
  offset: number,
  length: number,
  stride: number,
): void {
  if (source === undefined) throw new RangeError(`row ${row}: there is no source ${index}`)
  if (offset + length > source.byteLength)
    throw new RangeError(
      `row ${row}: bytes ${offset} to ${offset + length} of a source of ${source.byteLength}`,
    )
  if (stride !== 0 && length > stride)
    throw new RangeError(`row ${row}: ${length} bytes in a row of ${stride}`)
}

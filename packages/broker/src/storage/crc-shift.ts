// The CRC-32 of bytes whose own CRC is known already, appended to bytes before them without being read
// again: crc(a, b) = shift(crc(a), bytes of b) ^ crc(b), where a shift multiplies by x^(8 x bytes) modulo
// CRC-32's polynomial, in its reflected form: bit 31 is x^0.

const POLYNOMIAL = 0xedb88320
const ONE = 0x80000000
const X_TO_8 = 0x00800000
/** Lengths whose tables are kept, 4 KiB each. */
const TABLES_MAX = 256

const tables = new Map<number, Uint32Array>()
let lastBytes = 0
let lastTable = tableFor(0)

/** The CRC of what `crc` is the CRC of and so many zeros behind, but for the CRC of those zeros. */
export function shiftCrc(crc: number, bytes: number): number {
  if (bytes !== lastBytes) {
    lastTable = tables.get(bytes) ?? tableFor(bytes)
    lastBytes = bytes
  }
  const table = lastTable
  return (
    table[crc & 255] ^
    table[256 + ((crc >>> 8) & 255)] ^
    table[512 + ((crc >>> 16) & 255)] ^
    table[768 + (crc >>> 24)]
  )
}

/** Of each byte of a CRC, in each of its four places, what it becomes. */
function tableFor(bytes: number): Uint32Array {
  const factor = xToBytes(bytes)
  const table = new Uint32Array(4 * 256)
  for (let place = 0; place < 4; place++) {
    for (let bit = 1; bit < 256; bit *= 2) {
      const ofBit = multiply(factor, bit << (8 * place))
      for (let low = 0; low < bit; low++)
        table[256 * place + bit + low] = ofBit ^ table[256 * place + low]
    }
  }
  if (tables.size >= TABLES_MAX) tables.clear()
  tables.set(bytes, table)
  return table
}

/** x^(8 x bytes). */
function xToBytes(bytes: number): number {
  let result = ONE
  let factor = X_TO_8
  for (let left = bytes; left > 0; left = Math.floor(left / 2)) {
    if (left % 2 === 1) result = multiply(factor, result)
    factor = multiply(factor, factor)
  }
  return result
}

function multiply(a: number, b: number): number {
  let product = 0
  let multiple = b
  for (let bit = 31; bit >= 0; bit--) {
    if (((a >>> bit) & 1) === 1) product ^= multiple
    multiple = (multiple & 1) === 1 ? (multiple >>> 1) ^ POLYNOMIAL : multiple >>> 1
  }
  return product >>> 0
}

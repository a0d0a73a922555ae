// A float32 row as a JSON array. Results of embeddings are mostly such rows, so this is where a run
// would spend its time: digits are written straight into a buffer. Nine significant digits are enough
// to read the same float32 back, and half of what its double would take.

/** '-0.' + 6 zeros + 9 digits, and room for what Number's own text may take. */
const NUMBER_BYTES_MAX = 32
const [ZERO, POINT, MINUS, COMMA, OPEN, CLOSE] = Buffer.from('0.-,[]')

/** Smaller or larger ones are written by Number's own rules, with an exponent. */
const PLAIN_MIN = 1e-6
const PLAIN_MAX = 1e9
/** Nine digits begin here. */
const DIGITS_MIN = 1e8

/** Powers of ten that are exact doubles. */
const POWERS = Float64Array.from({ length: 23 }, (_, exponent) => Number(`1e${exponent}`))

/** A buffer of its own that grows to the longest row seen. */
let scratch = Buffer.allocUnsafe(16 * 1024)

/** By Number's own rules. @returns the end. */
const writeOther = (bytes: Buffer, at: number, value: number): number =>
  at + bytes.write(JSON.stringify(value === 0 ? 0 : value), at, 'latin1')

/** `digits` / 10^decimals; all numbers here are small integers, which is what makes it fast. @returns the end. */
function writeDigits(bytes: Buffer, at: number, digits: number, decimals: number): number {
  let rest = digits | 0
  let left = decimals | 0
  while (left > 0 && rest % 10 === 0) {
    rest = (rest / 10) | 0
    left = (left - 1) | 0
  }
  let places = (left + 1) | 0
  while (places < 10 && rest >= POWERS[places]) places = (places + 1) | 0
  const isWhole = left === 0
  const end = (at + places + (isWhole ? 0 : 1)) | 0
  let to = end
  for (; left > 0; left = (left - 1) | 0) {
    const next = (rest / 10) | 0
    bytes[--to] = ZERO + rest - 10 * next
    rest = next
  }
  if (!isWhole) bytes[--to] = POINT
  while (to > at) {
    const next = (rest / 10) | 0
    bytes[--to] = ZERO + rest - 10 * next
    rest = next
  }
  return end
}

/** @returns the end. */
function writeNumber(bytes: Buffer, at: number, value: number): number {
  const magnitude = value < 0 ? -value : value
  if (!(magnitude >= PLAIN_MIN && magnitude < PLAIN_MAX)) return writeOther(bytes, at, value)
  let decimals = 0
  while (magnitude * POWERS[decimals] < DIGITS_MIN) decimals++
  const scale = POWERS[decimals]
  const digits = Math.floor(magnitude * scale + 0.5)
  if (Math.fround(digits / scale) !== magnitude) return writeOther(bytes, at, value)
  if (value < 0) bytes[at++] = MINUS
  return writeDigits(bytes, at, digits, decimals)
}

/** What JSON cannot say (NaN, infinities) is null. */
export function floatRowJson(row: Float32Array): string {
  const needed = 2 + row.length * (NUMBER_BYTES_MAX + 1)
  if (scratch.length < needed) scratch = Buffer.allocUnsafe(needed)
  const bytes = scratch
  let at = 0
  bytes[at++] = OPEN
  for (let i = 0; i < row.length; i++) {
    if (i > 0) bytes[at++] = COMMA
    at = writeNumber(bytes, at, row[i])
  }
  bytes[at++] = CLOSE
  return bytes.toString('latin1', 0, at)
}

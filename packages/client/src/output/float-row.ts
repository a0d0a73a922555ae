// A float32 row as a JSON array. Results of embeddings are mostly such rows, so this is where a run
// would spend its time: digits are written straight into a buffer. Nine significant digits are enough
// to read the same float32 back, and half of what its double would take.

const SIGNIFICANT_DIGITS = 9
/** '-0.' + 6 zeros + 9 digits, and room for what Number's own text may take. */
const NUMBER_BYTES_MAX = 32
const [ZERO, POINT, MINUS, COMMA, OPEN, CLOSE] = Buffer.from('0.-,[]')

/** Powers of ten that are exact doubles. */
const POWERS = Float64Array.from({ length: 23 }, (_, exponent) => Number(`1e${exponent}`))

/** Smaller or larger ones are written by Number's own rules, with an exponent. */
const PLAIN_MIN = 1e-6
const PLAIN_MAX = 1e9

let bytes = Buffer.allocUnsafe(64 * 1024)
let length = 0

/** The value as `digits` / 10^decimals, or -1 when nine digits do not give the float32 back. */
let decimals = 0
function digitsOf(value: number): number {
  decimals = SIGNIFICANT_DIGITS - 1 - Math.floor(Math.log10(value))
  const scale = POWERS[decimals]
  let digits = Math.round(value * scale)
  if (Math.fround(digits / scale) !== value) return -1
  while (decimals > 0 && digits % 10 === 0) {
    digits /= 10
    decimals -= 1
  }
  return digits
}

function writeDigits(digits: number): void {
  let places = decimals + 1
  while (places < SIGNIFICANT_DIGITS + 1 && digits >= POWERS[places]) places += 1
  const pointBytes = decimals > 0 ? 1 : 0
  let at = length + places + pointBytes
  length = at
  let rest = digits
  for (let place = 0; place < places; place++) {
    if (place === decimals && place > 0) bytes[--at] = POINT
    const next = Math.floor(rest / 10)
    bytes[--at] = ZERO + rest - 10 * next
    rest = next
  }
}

function writeNumber(value: number): void {
  const magnitude = Math.abs(value)
  const isPlain = magnitude >= PLAIN_MIN && magnitude < PLAIN_MAX
  const digits = isPlain ? digitsOf(magnitude) : -1
  if (digits < 0) {
    length += bytes.write(JSON.stringify(value === 0 ? 0 : value), length, 'latin1')
    return
  }
  if (value < 0) bytes[length++] = MINUS
  writeDigits(digits)
}

/** What JSON cannot say (NaN, infinities) is null. */
export function floatRowJson(row: Float32Array): string {
  const needed = 2 + row.length * (NUMBER_BYTES_MAX + 1)
  if (bytes.length < needed) bytes = Buffer.allocUnsafe(needed)
  length = 0
  bytes[length++] = OPEN
  for (let i = 0; i < row.length; i++) {
    if (i > 0) bytes[length++] = COMMA
    writeNumber(row[i])
  }
  bytes[length++] = CLOSE
  return bytes.toString('latin1', 0, length)
}

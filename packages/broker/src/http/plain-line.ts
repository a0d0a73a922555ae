// The fast way for the line that nearly every producer sends: an object of `id`, `tokens` and perhaps
// `model`, read from bytes to columns without a JavaScript number per token in between. Whatever is
// not of that plain form (escapes, other fields, anything malformed) goes the general way, which has
// the last word on what is wrong; test/http/plain-line.test.ts holds the two against each other.
import { ID_BYTES_MAX, INT32_MAX } from '@fabric/protocol'
import type { ItemColumns } from './columns.js'

export interface PlainItem {
  readonly id: string
  readonly model: number | null
  /** Tokens, written behind `columns.tokensAt`. */
  readonly length: number
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const COMMA = 0x2c
const COLON = 0x3a
const ZERO = 0x30
const NINE = 0x39

/** JSON's white space; a line feed ends the line before this looks at it. */
export const isSpace = (byte: number): boolean => byte === 0x20 || byte === 0x09 || byte === 0x0d

// Where the scan of the current line stands, and what its last number was. They are module variables,
// as a line is read in one go and an object per line would cost what the fast way saves.
let at = 0
let number = 0

export function readPlainLine(
  body: Buffer,
  start: number,
  end: number,
  columns: ItemColumns,
): PlainItem | null {
  at = start
  if (!take(body, end, OPEN_BRACE)) return null
  let id: string | null = null
  let model: number | null = null
  let length = 0
  do {
    const name = readString(body, end)
    if (name === null || !take(body, end, COLON)) return null
    if (name === 'id' && id === null) {
      id = readString(body, end)
      if (id === null || id.length === 0 || id.length > ID_BYTES_MAX) return null
    } else if (name === 'tokens' && length === 0) {
      length = readTokens(body, end, columns)
      if (length === 0) return null
    } else if (name === 'model' && model === null) {
      skipSpace(body, end)
      if (!readNumber(body, end)) return null
      model = number
    } else return null
  } while (take(body, end, COMMA))
  if (id === null || length === 0 || !take(body, end, CLOSE_BRACE)) return null
  skipSpace(body, end)
  return at === end ? { id, model, length } : null
}

function skipSpace(body: Buffer, end: number): void {
  while (at < end && isSpace(body[at])) at++
}

function take(body: Buffer, end: number, byte: number): boolean {
  skipSpace(body, end)
  if (at >= end || body[at] !== byte) return false
  at++
  return true
}

/** A string of printable ASCII without escapes, or null. */
function readString(body: Buffer, end: number): string | null {
  if (!take(body, end, QUOTE)) return null
  const from = at
  for (; at < end; at++) {
    const byte = body[at]
    if (byte === QUOTE) return body.toString('latin1', from, at++)
    if (byte === BACKSLASH || byte < 0x20 || byte > 0x7e) return null
  }
  return null
}

/** @returns how many were read, or 0 when the array is not plain. */
function readTokens(body: Buffer, end: number, columns: ItemColumns): number {
  if (!take(body, end, OPEN_BRACKET)) return 0
  // A token and its comma take at least two bytes.
  const tokens = columns.reserveTokens(((end - at) >>> 1) + 1)
  const first = columns.tokensAt
  let count = 0
  do {
    skipSpace(body, end)
    if (!readNumber(body, end)) return 0
    tokens[first + count++] = number
  } while (take(body, end, COMMA))
  return take(body, end, CLOSE_BRACKET) ? count : 0
}

/** An integer from 0 to 2147483647 as JSON writes it; its value is left in `number`. */
function readNumber(body: Buffer, end: number): boolean {
  const from = at
  let value = 0
  for (; at < end; at++) {
    const byte = body[at]
    if (byte < ZERO || byte > NINE) break
    value = 10 * value + (byte - ZERO)
  }
  const digits = at - from
  if (digits === 0 || digits > 10 || value > INT32_MAX) return false
  number = value
  return digits === 1 || body[from] !== ZERO
}

// The body of POST /v1/items as a sequence of items: NDJSON, one object, an array, or
// { "items": [...] }. NDJSON is parsed line by line, so that a long body can be taken in turns.
import { isUtf8 } from 'node:buffer'
import { FabricError } from '@fabric/protocol'
import type { ItemColumns } from './columns.js'
import { isSpace, type PlainItem, readPlainLine } from './plain-line.js'

/** One item as it stands in the body, and what its place is called in a refusal. */
export interface RawItem {
  /** 1-based line of NDJSON, else 0. */
  readonly line: number
  /** Like `items[3]`; empty for NDJSON and for a single object. */
  readonly path: string
  /** @throws FabricError FABRIC_ITEM_MALFORMED when the line is no JSON. */
  parse(): unknown
  /** The item, with its tokens written to the columns, if its line has the plain form. */
  readPlain(columns: ItemColumns): PlainItem | null
}

const LINE_FEED = 10

/**
 * Throws before the first item, so that nothing of a body that is refused whole was taken.
 * @throws FabricError FABRIC_BAD_REQUEST when it can't be read, FABRIC_TOO_LARGE when it holds more
 * than `maxItems`: each costs an answer, whatever its size.
 */
export function* itemsOfBody(body: Buffer, ndjson: boolean, maxItems: number): Generator<RawItem> {
  if (!isUtf8(body)) throw new FabricError('FABRIC_BAD_REQUEST', 'the body is not UTF-8')
  if (ndjson) {
    if (hasMoreLines(body, maxItems)) throw tooMany('lines', maxItems)
    yield* itemsOfLines(body)
  } else yield* itemsOfJson(body, maxItems)
}

const tooMany = (what: string, maxItems: number) =>
  new FabricError(
    'FABRIC_TOO_LARGE',
    `the body has more than ${maxItems} ${what} (maxItemsPerRequest): nothing of it was taken`,
    { field: 'items' },
  )

/** Blank lines count: they are looked at too. */
function hasMoreLines(body: Buffer, max: number): boolean {
  let start = 0
  for (let line = 0; line < max; line++) {
    const feed = body.indexOf(LINE_FEED, start)
    if (feed === -1) return false
    start = feed + 1
  }
  return start < body.length
}

class LineItem implements RawItem {
  readonly path = ''

  constructor(
    readonly body: Buffer,
    readonly start: number,
    readonly end: number,
    readonly line: number,
  ) {}

  parse(): unknown {
    try {
      return JSON.parse(this.body.toString('utf8', this.start, this.end))
    } catch (error) {
      throw new FabricError('FABRIC_ITEM_MALFORMED', `not JSON: ${(error as Error).message}`)
    }
  }

  readPlain(columns: ItemColumns): PlainItem | null {
    return readPlainLine(this.body, this.start, this.end, columns)
  }
}

class ListItem implements RawItem {
  readonly line = 0

  constructor(
    readonly value: unknown,
    readonly path: string,
  ) {}

  parse(): unknown {
    return this.value
  }

  readPlain(): null {
    return null
  }
}

function* itemsOfLines(body: Buffer): Generator<RawItem> {
  let line = 0
  for (let start = 0; start < body.length; ) {
    const feed = body.indexOf(LINE_FEED, start)
    const end = feed === -1 ? body.length : feed
    line += 1
    if (!isBlank(body, start, end)) yield new LineItem(body, start, end, line)
    start = end + 1
  }
}

function isBlank(body: Buffer, start: number, end: number): boolean {
  for (let i = start; i < end; i++) if (!isSpace(body[i])) return false
  return true
}

function* itemsOfJson(body: Buffer, maxItems: number): Generator<RawItem> {
  let value: unknown
  try {
    value = JSON.parse(body.toString('utf8'))
  } catch (error) {
    throw new FabricError('FABRIC_BAD_REQUEST', `the body is not JSON: ${(error as Error).message}`)
  }
  const list = listOf(value)
  if (list === null) {
    yield new ListItem(value, '')
    return
  }
  if (list.length > maxItems) throw tooMany('items', maxItems)
  for (let i = 0; i < list.length; i++) yield new ListItem(list[i], `items[${i}]`)
}

/** The items of a body that is a list, or null when it is one item. */
function listOf(value: unknown): readonly unknown[] | null {
  if (Array.isArray(value)) return value
  if (typeof value !== 'object' || value === null || !('items' in value)) return null
  const other = Object.keys(value).find((key) => key !== 'items')
  if (other !== undefined)
    throw new FabricError('FABRIC_ITEM_MALFORMED', 'a list of items has no such field', {
      field: other,
    })
  if (!Array.isArray(value.items))
    throw new FabricError('FABRIC_ITEM_MALFORMED', 'items is an array', { field: 'items' })
  return value.items
}

// The body of POST /v1/items as a sequence of items: NDJSON, one object, an array, or
// { "items": [...] }. NDJSON is parsed line by line, so that a long body can be taken in turns.
import { isUtf8 } from 'node:buffer'
import { FabricError } from '@fabric/protocol'

/** One item, parsed or not, and what its place is called in a refusal. */
export interface RawItem {
  readonly value: unknown
  /** Set when the line is no JSON. */
  readonly syntaxError: string | null
  /** 1-based line of NDJSON. */
  readonly line: number | null
  /** Like `items[3]`; empty for NDJSON and for a single object. */
  readonly path: string
}

const LINE_FEED = 10

/** @throws FabricError FABRIC_BAD_REQUEST when the body as a whole can't be read. */
export function* itemsOfBody(body: Buffer, ndjson: boolean): Generator<RawItem> {
  if (!isUtf8(body)) throw new FabricError('FABRIC_BAD_REQUEST', 'the body is not UTF-8')
  if (ndjson) yield* itemsOfLines(body)
  else yield* itemsOfJson(body)
}

function* itemsOfLines(body: Buffer): Generator<RawItem> {
  let line = 0
  for (let start = 0; start < body.length; ) {
    const feed = body.indexOf(LINE_FEED, start)
    const end = feed === -1 ? body.length : feed
    line += 1
    const content = body.toString('utf8', start, end).trim()
    start = end + 1
    if (content === '') continue
    yield parseLine(content, line)
  }
}

function parseLine(content: string, line: number): RawItem {
  try {
    return { value: JSON.parse(content), syntaxError: null, line, path: '' }
  } catch (error) {
    return { value: null, syntaxError: (error as Error).message, line, path: '' }
  }
}

function* itemsOfJson(body: Buffer): Generator<RawItem> {
  let value: unknown
  try {
    value = JSON.parse(body.toString('utf8'))
  } catch (error) {
    throw new FabricError('FABRIC_BAD_REQUEST', `the body is not JSON: ${(error as Error).message}`)
  }
  const list = listOf(value)
  if (list === null) {
    yield { value, syntaxError: null, line: null, path: '' }
    return
  }
  for (let i = 0; i < list.length; i++)
    yield { value: list[i], syntaxError: null, line: null, path: `items[${i}]` }
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

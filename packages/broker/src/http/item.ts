// One item of POST /v1/items, checked by hand and written straight into columns. A refusal names
// the field; nothing of a refused item stays in the columns.
import { type ErrorCode, FabricError, ID_BYTES_MAX, INT32_MAX } from '@fabric/protocol'
import type { ItemColumns } from './columns.js'

const FIELDS = [
  'id',
  'model',
  'tokens',
  'payload',
  'length',
  'job',
  'text',
  'durable',
  'deadlineMs',
  'maxWaitMs',
] as const
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/
const LONE_SURROGATE = /\p{Surrogate}/u

/** The parts that the caller decides on before the item is written. */
export interface ItemHead {
  readonly id: string
  readonly model: number | null
  readonly job: string | null
  readonly durable?: boolean
}

const malformed = (field: string, message: string) =>
  new FabricError('FABRIC_ITEM_MALFORMED', message, { field })

const refuse = (code: ErrorCode, field: string, message: string) =>
  new FabricError(code, message, { field })

const isInt32 = (value: unknown): value is number =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) <= INT32_MAX

/** @throws FabricError with `field` relative to the item. */
export function checkHead(value: unknown): ItemHead & Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw malformed('', 'an item is an object')
  const item = value as Record<string, unknown>
  for (const field in item) {
    if (!FIELDS.includes(field as (typeof FIELDS)[number]))
      throw malformed(field, 'an item has no such field')
  }
  const { id, model = null, job = null, durable } = item
  if (typeof id !== 'string') {
    throw malformed('id', id === undefined ? 'an item needs an id' : 'an id is a string')
  }
  checkId(id)
  if (model !== null && !isInt32(model))
    throw refuse('FABRIC_MODEL_UNKNOWN', 'model', 'a model is an integer from 0 to 2147483647')
  if (job !== null && typeof job !== 'string') throw malformed('job', 'a job is named by a string')
  if (durable !== undefined && typeof durable !== 'boolean')
    throw malformed('durable', 'durable is true or false')
  return item as ItemHead & Record<string, unknown>
}

function checkId(id: string): void {
  if (id === '') throw malformed('id', 'an id is not empty')
  // A UTF-16 unit takes at most 3 bytes, so most ids need no exact count.
  if (3 * id.length > ID_BYTES_MAX && Buffer.byteLength(id) > ID_BYTES_MAX)
    throw malformed(
      'id',
      `an id has at most ${ID_BYTES_MAX} bytes, this has ${Buffer.byteLength(id)}`,
    )
  if (LONE_SURROGATE.test(id)) throw malformed('id', 'an id is well-formed Unicode')
}

/**
 * Checks what is left of the item and appends it.
 * @throws FabricError with `field` relative to the item.
 */
export function appendItem(
  columns: ItemColumns,
  item: ItemHead & Readonly<Record<string, unknown>>,
  model: number,
): void {
  if (item.text !== undefined)
    throw refuse(
      'FABRIC_TEXT_NEEDS_TOKENIZER',
      'text',
      'this broker has no tokenizer: send tokens, or use fabric run',
    )
  const { deadlineMs } = item
  if (deadlineMs !== undefined && (!isInt32(deadlineMs) || deadlineMs === 0))
    throw malformed('deadlineMs', 'a deadline is an integer of milliseconds, at least 1')
  columns.deadlineMs = deadlineMs ?? 0
  const { maxWaitMs } = item
  if (maxWaitMs !== undefined && (!isInt32(maxWaitMs) || maxWaitMs === 0))
    throw malformed('maxWaitMs', 'a wait is an integer of milliseconds, at least 1')
  columns.maxWaitMs = maxWaitMs ?? 0
  if (item.payload !== undefined) {
    appendPayload(columns, item, model)
    return
  }
  if (item.tokens === undefined) throw malformed('tokens', 'an item needs tokens, or a payload')
  if (item.length !== undefined) throw malformed('length', 'length goes with a payload')
  columns.pushTokens(item.id, model, writeTokens(columns, item.tokens))
}

function writeTokens(columns: ItemColumns, tokens: unknown): number {
  if (!Array.isArray(tokens)) throw malformed('tokens', 'tokens are an array of integers')
  const count = tokens.length
  if (count === 0) throw malformed('tokens', 'an item has at least one token')
  const target = columns.reserveTokens(count)
  const at = columns.tokensAt
  for (let i = 0; i < count; i++) {
    const token: unknown = tokens[i]
    if (!isInt32(token))
      throw malformed(
        `tokens[${i}]`,
        `a token is an integer from 0 to 2147483647, this is ${describe(token)}`,
      )
    target[at + i] = token
  }
  return count
}

function appendPayload(
  columns: ItemColumns,
  item: ItemHead & Readonly<Record<string, unknown>>,
  model: number,
): void {
  const { payload, length, tokens } = item
  if (tokens !== undefined) throw malformed('payload', 'an item has tokens or a payload, not both')
  if (typeof payload !== 'string' || payload.length % 4 !== 0 || !BASE64.test(payload))
    throw malformed('payload', 'a payload is a base64 string')
  if (payload === '') throw malformed('payload', 'a payload is not empty')
  if (!isInt32(length) || length === 0)
    throw malformed('length', 'a payload needs the length it stands for: an integer of at least 1')
  columns.pushPayload(item.id, model, length, Buffer.from(payload, 'base64'))
}

function describe(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value)
  return text.length > 40 ? `${text.slice(0, 40)}…` : text
}

// What a handler may return, and how it becomes entries of a results message. A value that cannot be
// sent fails its own item, in words that name what was wrong.
import { Encoding, type ErrorCode, FabricError, type ItemResult, Outcome } from '@fabric/protocol'

/** Fails one item of a batch; its neighbours complete. */
export class ItemError extends Error {
  override readonly name = 'ItemError'
  readonly retry: boolean
  readonly code: ErrorCode

  constructor(message: string, options: { retry?: boolean; code?: ErrorCode } = {}) {
    super(message)
    this.retry = options.retry ?? false
    this.code = options.code ?? 'FABRIC_ITEM_FAILED'
  }
}

export type Json =
  | null
  | boolean
  | number
  | string
  | readonly Json[]
  | { readonly [key: string]: Json }

/** Bytes, a float32 row, JSON, or the reason why there is none. */
export type ItemValue = Uint8Array | Float32Array | Json | ItemError

/** A value whose input was cut: says to how many tokens. */
export interface TruncatedValue {
  readonly value: ItemValue
  readonly truncatedTo: number
}

/** One value per item; or the rows of all items one after another, size x d. */
export type BatchResults = Float32Array | readonly (ItemValue | TruncatedValue)[]

const utf8 = new TextEncoder()
const NO_BYTES = new Uint8Array(0)

const bytesOf = (array: Uint8Array | Float32Array): Uint8Array =>
  new Uint8Array(array.buffer, array.byteOffset, array.byteLength)

/** One value per item. @throws FabricError FABRIC_RESULT_MALFORMED when it is not that */
export function itemValues(
  results: unknown,
  size: number,
): readonly (ItemValue | TruncatedValue)[] {
  if (results instanceof Float32Array) return rowsOf(results, size)
  if (!Array.isArray(results))
    throw malformed(
      `one result per item was expected, an array or a Float32Array, and ${kindOf(results)} was returned`,
    )
  if (results.length !== size)
    throw malformed(`${size} results were expected, one per item, and ${results.length} returned`)
  return results
}

function rowsOf(rows: Float32Array, size: number): readonly Float32Array[] {
  const width = rows.length / size
  if (width === 0 || !Number.isInteger(width))
    throw malformed(
      `a Float32Array of ${size} rows of equal width was expected, and one of length ${rows.length} returned`,
    )
  return Array.from({ length: size }, (_, i) => rows.subarray(i * width, (i + 1) * width))
}

/** @param truncatedTo what the consumer itself cut the input to, 0 = nothing */
export function completedOrFailed(
  index: number,
  result: ItemValue | TruncatedValue,
  truncatedTo: number,
): ItemResult {
  if (isTruncated(result)) return completedOrFailed(index, result.value, result.truncatedTo)
  if (result instanceof ItemError) return failed(index, result.code, result.message, result.retry)
  const entry = { index, outcome: Outcome.completed, truncatedTo }
  if (result instanceof Float32Array)
    return { ...entry, encoding: Encoding.float32, value: bytesOf(result) }
  if (result instanceof Uint8Array)
    return { ...entry, encoding: Encoding.bytes, value: bytesOf(result) }
  try {
    return { ...entry, encoding: Encoding.json, value: utf8.encode(toJson(result)) }
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    return failed(index, 'FABRIC_RESULT_MALFORMED', `result ${index} of the batch: ${why}`, false)
  }
}

export const failed = (
  index: number,
  code: ErrorCode,
  message: string,
  retry: boolean,
): ItemResult => ({
  index,
  outcome: retry ? Outcome.retry : Outcome.failed,
  encoding: Encoding.error,
  value: utf8.encode(JSON.stringify({ code, message })),
  truncatedTo: 0,
})

/** Back to the queue untouched; with `split`, in halves, because the batch was too much (S28). */
export const nacked = (index: number, split: boolean): ItemResult => ({
  index,
  outcome: Outcome.nack,
  encoding: split ? Encoding.error : Encoding.none,
  value: split
    ? utf8.encode(JSON.stringify({ code: 'FABRIC_OUT_OF_MEMORY', message: 'out_of_memory' }))
    : NO_BYTES,
  truncatedTo: 0,
})

/** Exactly these two keys: JSON of the user's may hold a `value` too. */
function isTruncated(result: unknown): result is TruncatedValue {
  if (typeof result !== 'object' || result === null) return false
  const { truncatedTo } = result as Partial<TruncatedValue>
  return (
    Object.keys(result).length === 2 &&
    'value' in result &&
    Number.isInteger(truncatedTo) &&
    (truncatedTo as number) > 0 &&
    (truncatedTo as number) <= 0xffffffff
  )
}

function toJson(value: unknown): string {
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer)
    throw new Error(`${kindOf(value)} is no result; bytes go as Uint8Array, rows as Float32Array`)
  if (typeof value === 'number' && !Number.isFinite(value))
    throw new Error(`${value} is no JSON value`)
  const json = JSON.stringify(value) as string | undefined
  if (json === undefined) throw new Error(`${kindOf(value)} is no JSON value`)
  return json
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value)
  if (typeof value !== 'object') return `a ${typeof value}`
  return `an object of class ${value.constructor?.name ?? 'null'}`
}

const malformed = (message: string) => new FabricError('FABRIC_RESULT_MALFORMED', message)

// One line of GET /v1/jobs/{id}/results from one record. What a consumer sent is not trusted to be
// JSON: it is parsed before it becomes part of an answer.
import {
  type EncodedValue,
  Encoding,
  ERROR_KINDS,
  type ErrorBody,
  type ResultLine,
} from '@fabric/protocol'
import type { ResultRecord } from './log.js'

export type ValueEncoding = 'float' | 'base64'

const text = new TextDecoder()

/** The line with its line feed. */
export function renderLine(offset: number, record: ResultRecord, encoding: ValueEncoding): string {
  const head = `{"offset":${offset},"id":${JSON.stringify(text.decode(record.id))},"status":"${record.status}","attempts":${record.attempts}`
  const truncated = record.truncatedTo > 0 ? `,"truncatedTo":${record.truncatedTo}` : ''
  return `${head}${renderValue(record, encoding)}${truncated}}\n`
}

function renderValue(record: ResultRecord, encoding: ValueEncoding): string {
  const { value } = record
  switch (record.encoding) {
    case Encoding.float32:
      return encoding === 'base64'
        ? `,"result":${renderEncoded('float32', value)}`
        : `,"result":${renderRow(value)}`
    case Encoding.bytes:
      return `,"result":${renderEncoded('bytes', value)}`
    case Encoding.json:
      return `,"result":${compactJson(value) ?? renderEncoded('bytes', value)}`
    case Encoding.error:
      return `,"error":${JSON.stringify(errorFrom(value))}`
    default:
      return ''
  }
}

/** Numbers in full precision; what JSON cannot say (NaN, infinities) is null. */
function renderRow(value: Uint8Array): string {
  const row = new Float32Array(value.buffer, value.byteOffset, value.byteLength / 4)
  return row.every(Number.isFinite) ? `[${row.join(',')}]` : JSON.stringify(Array.from(row))
}

function renderEncoded(dtype: EncodedValue['dtype'], value: Uint8Array): string {
  const base64 = Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64')
  return `{"dtype":"${dtype}","base64":"${base64}"}`
}

/** The text on one line, or null when it is no JSON. */
function compactJson(value: Uint8Array): string | null {
  try {
    return JSON.stringify(JSON.parse(text.decode(value)))
  } catch {
    return null
  }
}

const encoder = new TextEncoder()

export const encodeErrorValue = (error: ErrorBody): Uint8Array =>
  encoder.encode(JSON.stringify(error))

/** The error a consumer gave for an item; an unknown code becomes FABRIC_ITEM_FAILED. */
export function errorFrom(value: Uint8Array): ErrorBody {
  const plain = text.decode(value)
  try {
    const { code, message, field } = JSON.parse(plain) as Partial<ResultLine['error'] & object>
    return {
      code: code !== undefined && Object.hasOwn(ERROR_KINDS, code) ? code : 'FABRIC_ITEM_FAILED',
      message: typeof message === 'string' ? message : plain,
      ...(typeof field === 'string' ? { field } : {}),
    }
  } catch {
    return { code: 'FABRIC_ITEM_FAILED', message: plain }
  }
}

// One line of an output file.
import type { LineError } from '../input/parse.js'
import type { JobResult } from '../results/value.js'

const SIGNIFICANT_DIGITS = 9

/**
 * The same float32 in at most nine digits, half the length that a double needs: reading it back as
 * float32 gives the same bits.
 */
export function shortFloat32(value: number): number {
  if (value === 0 || !Number.isFinite(value)) return value
  const digits = SIGNIFICANT_DIGITS - 1 - Math.floor(Math.log10(Math.abs(value)))
  if (digits < 0 || digits > 22) return value
  const scale = 10 ** digits
  const short = Math.round(value * scale) / scale
  return Math.fround(short) === value ? short : value
}

const rowJson = (row: Float32Array): string => {
  const numbers = new Array<number>(row.length)
  for (let i = 0; i < row.length; i++) numbers[i] = shortFloat32(row[i])
  return JSON.stringify(numbers)
}

function valueJson(value: unknown): string {
  if (value instanceof Float32Array) return rowJson(value)
  if (value instanceof Uint8Array) {
    const base64 = Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64')
    return JSON.stringify({ dtype: 'bytes', base64 })
  }
  return JSON.stringify(value)
}

/** With its line feed. */
export function resultRecord(result: JobResult): string {
  const { id, status, attempts, error, truncatedTo } = result
  const parts = [`"id":${JSON.stringify(id)},"status":"${status}"`]
  if (result.result !== undefined) parts.push(`"result":${valueJson(result.result)}`)
  parts.push(`"attempts":${attempts}`)
  if (error !== undefined) parts.push(`"error":${JSON.stringify(error)}`)
  if (truncatedTo !== undefined) parts.push(`"truncatedTo":${truncatedTo}`)
  return `{${parts.join(',')}}\n`
}

/** The record of a line that never became an item. */
export const failedRecord = (id: string, error: LineError): string =>
  `${JSON.stringify({ id, status: 'failed', attempts: 0, error })}\n`

// One line of an output file.
import type { LineError } from '../input/parse.js'
import type { JobResult } from '../results/value.js'
import { floatRowJson } from './float-row.js'

function valueJson(value: unknown): string {
  if (value instanceof Float32Array) return floatRowJson(value)
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

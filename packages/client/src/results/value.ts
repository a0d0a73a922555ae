// One line of the results, decoded.
import type { EncodedValue, ErrorBody, ResultLine } from '@fabric/protocol'
import { FabricError } from '@fabric/protocol'

export interface JobResult {
  readonly id: string
  readonly status: ResultLine['status']
  readonly attempts: number
  /** A Float32Array row, bytes (Uint8Array), or what the handler's JSON said. */
  readonly result?: unknown
  readonly error?: ErrorBody
  /** Tokens that the runtime kept, when it cut the input. */
  readonly truncatedTo?: number
  /** Place in the job's results, from 0 without gaps: reading goes on at the next. */
  readonly offset: number
}

const isEncoded = (value: unknown): value is EncodedValue =>
  typeof value === 'object' && value !== null && 'dtype' in value && 'base64' in value

/** A buffer of its own: a Float32Array must begin at a multiple of 4. */
function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.from(base64, 'base64'))
}

function decodeValue(value: unknown): unknown {
  if (!isEncoded(value)) return value
  const bytes = bytesOf(value.base64)
  return value.dtype === 'float32' ? new Float32Array(bytes.buffer) : bytes
}

/** @throws FabricError FABRIC_PROTOCOL when the line is no result. */
export function parseResult(line: string): JobResult {
  let parsed: ResultLine
  try {
    parsed = JSON.parse(line)
  } catch (cause) {
    const shown = line.slice(0, 80)
    throw new FabricError('FABRIC_PROTOCOL', `results: not JSON: ${shown}`, { cause })
  }
  return parsed.result === undefined ? parsed : { ...parsed, result: decodeValue(parsed.result) }
}

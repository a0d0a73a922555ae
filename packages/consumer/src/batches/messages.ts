// Cuts the results of a batch into messages that a frame can hold.
import {
  DATA_FRAME_BYTES_MAX,
  encodeResults,
  FRAME_HEADER_BYTES,
  type ItemResult,
} from '@fabric/protocol'
import { failed } from './results.js'

/** An entry's columns beside its value, generously; and the message's own head. */
const ENTRY_BYTES = 32
const BODY_BYTES_MAX = DATA_FRAME_BYTES_MAX - FRAME_HEADER_BYTES - 1024

/** Bodies of results frames, nearly always one. @param bytesMax differs in tests only */
export function resultsBodies(
  batch: number,
  brokerLife: bigint,
  results: readonly ItemResult[],
  bytesMax = BODY_BYTES_MAX,
): Uint8Array[] {
  const bodies: Uint8Array[] = []
  let part: ItemResult[] = []
  let bytes = 0
  for (const result of results.map((each) => sendable(each, bytesMax))) {
    const more = ENTRY_BYTES + result.value.byteLength
    if (bytes + more > bytesMax) {
      bodies.push(encodeResults(batch, brokerLife, part))
      part = []
      bytes = 0
    }
    part.push(result)
    bytes += more
  }
  bodies.push(encodeResults(batch, brokerLife, part))
  return bodies
}

function sendable(result: ItemResult, bytesMax: number): ItemResult {
  const { index, value } = result
  if (ENTRY_BYTES + value.byteLength <= bytesMax) return result
  return failed(
    index,
    'FABRIC_TOO_LARGE',
    `the result has ${value.byteLength} bytes, more than a message holds`,
    false,
  )
}

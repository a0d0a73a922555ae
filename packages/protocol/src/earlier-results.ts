// Results of a batch that an earlier life of the broker gave out (S26). Its lease means nothing any
// more, so each result stands beside the item that it was made of: whoever waits for the very same item
// may take it.
//
//   0 u32 bytes of the results   4 u32 model   8 u32 count
//  12 u32 bytes of ids   16 u32 tokens   20 u32 bytes of payloads
//  24 results message, padded to a multiple of 8; its entry i is of item i:
//   . i32[count] lengths   . u32[count] id ends   . u32[count] payload ends
//   . i32 tokens, item after item; an item with a payload has none
//   . payloads, item after item   . ids, UTF-8
import { FabricError } from './errors.js'
import { decodeResults, type ResultsMessage } from './results.js'

/** Items as flat columns; an item without a payload has one of length 0. */
export interface ItemInputs {
  readonly model: number
  readonly lengths: Int32Array // [count]
  readonly idEnds: Uint32Array // [count]
  readonly payloadEnds: Uint32Array // [count]
  readonly tokens: Int32Array
  readonly payloads: Uint8Array
  readonly ids: Uint8Array
}

export interface EarlierResults extends ItemInputs {
  readonly results: ResultsMessage
}

const HEADER_BYTES = 24
const align8 = (n: number) => Math.ceil(n / 8) * 8

/** Body of the frame. @param results body of a results message with an entry for each item */
export function encodeEarlierResults(results: Uint8Array, inputs: ItemInputs): Uint8Array {
  const { lengths, idEnds, payloadEnds, tokens, payloads, ids } = inputs
  const columnsAt = HEADER_BYTES + align8(results.byteLength)
  const columns = [lengths, idEnds, payloadEnds, tokens, payloads, ids]
  const bytes = columns.reduce((sum, column) => sum + column.byteLength, columnsAt)
  const body = new Uint8Array(bytes)
  const view = new DataView(body.buffer)
  const head = [
    results.byteLength,
    inputs.model,
    lengths.length,
    ids.byteLength,
    tokens.length,
    payloads.byteLength,
  ]
  head.forEach((value, i) => {
    view.setUint32(4 * i, value, true)
  })
  body.set(results, HEADER_BYTES)
  let at = columnsAt
  for (const { buffer, byteOffset, byteLength } of columns) {
    body.set(new Uint8Array(buffer, byteOffset, byteLength), at)
    at += byteLength
  }
  return body
}

/** A copy: the frame's bytes are borrowed. @throws FabricError FABRIC_PROTOCOL */
export function decodeEarlierResults(frame: Uint8Array): EarlierResults {
  if (frame.byteLength < HEADER_BYTES) throw bad('too short')
  const body = frame.slice()
  const { buffer } = body
  const [resultsBytes, model, count, idBytes, tokens, payloadBytes] = new Uint32Array(buffer, 0, 6)
  const columnsAt = HEADER_BYTES + align8(resultsBytes)
  const tokensAt = columnsAt + 12 * count
  const payloadsAt = tokensAt + 4 * tokens
  const idsAt = payloadsAt + payloadBytes
  if (idsAt + idBytes !== body.byteLength) throw bad('its columns do not fill it')
  const results = decodeResults(body.subarray(HEADER_BYTES, HEADER_BYTES + resultsBytes))
  if (results.count !== count) throw bad(`${results.count} results of ${count} items`)
  const found: EarlierResults = {
    results,
    model,
    lengths: new Int32Array(buffer, columnsAt, count),
    idEnds: new Uint32Array(buffer, columnsAt + 4 * count, count),
    payloadEnds: new Uint32Array(buffer, columnsAt + 8 * count, count),
    tokens: new Int32Array(buffer, tokensAt, tokens),
    payloads: body.subarray(payloadsAt, idsAt),
    ids: body.subarray(idsAt),
  }
  checkEnds(found)
  return found
}

function checkEnds({ lengths, idEnds, payloadEnds, ids, payloads, tokens }: ItemInputs): void {
  let left = tokens.length
  for (let i = 0; i < lengths.length; i++) {
    const ofId = idEnds[i] - (i === 0 ? 0 : idEnds[i - 1])
    const ofPayload = payloadEnds[i] - (i === 0 ? 0 : payloadEnds[i - 1])
    if (ofPayload === 0) left -= lengths[i]
    if (ofId < 0 || ofPayload < 0 || lengths[i] < 1 || left < 0) throw bad(`item ${i} lies outside`)
  }
  const idBytes = idEnds.at(-1) ?? 0
  const payloadBytes = payloadEnds.at(-1) ?? 0
  if (left !== 0 || idBytes !== ids.byteLength || payloadBytes !== payloads.byteLength)
    throw bad('its columns do not end with its items')
}

const bad = (why: string) =>
  new FabricError('FABRIC_PROTOCOL', `earlier results: ${why}`, { field: 'earlierResults' })

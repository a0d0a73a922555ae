import { expect, test } from 'vitest'
import { decodeEarlierResults, encodeEarlierResults } from '../src/earlier-results.ts'
import { Encoding, encodeResults, type ItemResult, Outcome } from '../src/results.ts'

const bytes = (text: string) => new TextEncoder().encode(text)

const result = (index: number, value: string): ItemResult => ({
  index,
  outcome: Outcome.completed,
  encoding: Encoding.bytes,
  value: bytes(value),
  truncatedTo: 0,
})

/** Three tokens, a payload of five bytes that counts as two, one token. */
const INPUTS = {
  model: 7,
  lengths: Int32Array.of(3, 2, 1),
  idEnds: Uint32Array.of(1, 3, 4),
  payloadEnds: Uint32Array.of(0, 5, 5),
  tokens: Int32Array.of(11, 12, 13, 31),
  payloads: bytes('hello'),
  ids: bytes('abbc'),
}
const RESULTS = encodeResults(9, 5n, [result(2, 'x'), result(4, 'yy'), result(0, '')])

test('come back with their items, whatever stands before them in the buffer', () => {
  const body = encodeEarlierResults(RESULTS, INPUTS)
  const shifted = new Uint8Array(body.byteLength + 3)
  shifted.set(body, 3)
  const { results, ...inputs } = decodeEarlierResults(shifted.subarray(3))
  expect(inputs).toEqual(INPUTS)
  expect(results).toMatchObject({ batch: 9, brokerLife: 5n, count: 3 })
  expect([...results.index]).toEqual([2, 4, 0])
  expect(new TextDecoder().decode(results.value(1))).toBe('yy')
})

test.each([
  ['a result without an item', { ...INPUTS, lengths: Int32Array.of(3, 2) }],
  ['an end that goes back', { ...INPUTS, idEnds: Uint32Array.of(3, 1, 4) }],
  ['a length of 0', { ...INPUTS, lengths: Int32Array.of(3, 2, 0), tokens: Int32Array.of(1, 2, 3) }],
  ['tokens of no item', { ...INPUTS, tokens: Int32Array.of(11, 12, 13, 31, 32) }],
  ['too few tokens', { ...INPUTS, tokens: Int32Array.of(11, 12, 13) }],
  ['payload bytes of no item', { ...INPUTS, payloads: bytes('hello!') }],
])('%s is refused', (_, inputs) => {
  expect(() => decodeEarlierResults(encodeEarlierResults(RESULTS, inputs))).toThrow(
    expect.objectContaining({ code: 'FABRIC_PROTOCOL' }),
  )
})

test('bytes that are cut anywhere are refused', () => {
  const body = encodeEarlierResults(RESULTS, INPUTS)
  for (let length = 0; length < body.byteLength; length++)
    expect(() => decodeEarlierResults(body.subarray(0, length))).toThrow(
      expect.objectContaining({ code: 'FABRIC_PROTOCOL' }),
    )
})

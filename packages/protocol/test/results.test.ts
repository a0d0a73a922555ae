import { describe, expect, test } from 'vitest'
import { decodeResults, Encoding, encodeResults, FabricError, Outcome } from '../src/index.js'

const bytes = (text: string) => new TextEncoder().encode(text)
const results = [
  {
    index: 2,
    outcome: Outcome.completed,
    encoding: Encoding.float32,
    value: new Uint8Array(8),
    truncatedTo: 256,
  },
  {
    index: 0,
    outcome: Outcome.failed,
    encoding: Encoding.error,
    value: bytes('{}'),
    truncatedTo: 0,
  },
  {
    index: 1,
    outcome: Outcome.nack,
    encoding: Encoding.none,
    value: new Uint8Array(0),
    truncatedTo: 0,
  },
]

describe('the results message', () => {
  test('comes back as it was sent, item by item', () => {
    const message = decodeResults(encodeResults(2 ** 41, 5n, results))
    expect(message).toMatchObject({ batch: 2 ** 41, brokerLife: 5n, count: 3 })
    expect([...message.index]).toEqual([2, 0, 1])
    expect([...message.outcome]).toEqual([0, 1, 3])
    expect([...message.truncatedTo]).toEqual([256, 0, 0])
    expect([
      message.value(0).byteLength,
      new TextDecoder().decode(message.value(1)),
      message.value(2).byteLength,
    ]).toEqual([8, '{}', 0])
  })

  test('is read at any alignment, as a frame body comes', () => {
    const body = encodeResults(1, 1n, results)
    const shifted = new Uint8Array(body.byteLength + 3)
    shifted.set(body, 3)
    expect([...decodeResults(shifted.subarray(3)).index]).toEqual([2, 0, 1])
  })

  test('an empty message is a message', () => {
    expect(decodeResults(encodeResults(1, 1n, [])).count).toBe(0)
  })

  test('a cut message, a count that lies, unknown outcomes and half a float are refused', () => {
    const body = encodeResults(1, 1n, results)
    const changed = (at: number, value: number) => {
      const copy = body.slice()
      copy[at] = value
      return copy
    }
    for (let cut = 0; cut < body.byteLength; cut++) {
      expect(() => decodeResults(body.subarray(0, cut))).toThrow(FabricError)
    }
    expect(() => decodeResults(changed(18, 255))).toThrow(/do not fit/)
    expect(() => decodeResults(changed(24 + 36, 9))).toThrow(/unknown outcome/)
    expect(() => decodeResults(changed(24 + 39, 9))).toThrow(/encoding/)
    expect(() => decodeResults(changed(24 + 24, 7))).toThrow(/float32/)
  })
})

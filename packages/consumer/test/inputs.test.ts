// The items of a batch as they go beside their results (S26).
import { expect, test } from 'vitest'
import { inputsOf } from '../src/batches/inputs.js'
import { count, viewOf } from './support/batches.js'

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes)

const ITEMS = [
  { id: 'a', tokens: count(3) },
  { id: 'bb', tokens: count(2), payload: 'opaque' },
  { id: 'c', tokens: count(9) },
  { id: 'd', tokens: [70, 71] },
]

test.each(['padded', 'ragged'] as const)('of a %s batch, in the order of the results', (layout) => {
  const inputs = inputsOf(viewOf({ layout, items: ITEMS }), [3, 1, 0])
  expect(inputs).toMatchObject({
    model: 1,
    lengths: Int32Array.of(2, 2, 3),
    tokens: Int32Array.of(70, 71, 1, 2, 3),
    idEnds: Uint32Array.of(1, 3, 4),
    payloadEnds: Uint32Array.of(0, 6, 6),
  })
  expect([text(inputs.ids), text(inputs.payloads)]).toEqual(['dbba', 'opaque'])
})

test('of a batch without payloads there are none', () => {
  const items = [{ tokens: count(4) }, { tokens: count(5) }]
  const inputs = inputsOf(viewOf({ items }), [0, 1])
  expect(inputs).toMatchObject({ payloadEnds: Uint32Array.of(0, 0), payloads: new Uint8Array(0) })
  expect([...inputs.tokens]).toEqual([...count(4), ...count(5)])
})

// S17, S19, S21, S22: what goes into a batch, and what closed it.

import { expect, it } from 'vitest'
import { Bench } from './helpers.js'

it('S17: items x padded length never passes the budget', () => {
  const bench = new Bench()
  bench.register(1, { batchSize: 100, tokens: 100 })
  bench.submit(Array(20).fill(24))
  expect(bench.sent.map((sent) => sent.effect.budgetTokens)).toEqual([96, 96])
})

it('S17: the padded length is the longest item rounded up to the consumer’s own roundTo', () => {
  for (const [roundTo, padded] of [
    [1, 30],
    [8, 32],
    [64, 64],
  ]) {
    const bench = new Bench()
    bench.register(1, { batchSize: 2, tokens: 128, roundTo })
    bench.submit([25, 30])
    expect(bench.sent[0].effect.paddedLength).toBe(padded)
    expect(bench.sent[0].effect.budgetTokens).toBe(2 * padded)
  }
})

it('S17: one long item among short ones never inflates their batch (8,192 among 31 of 10)', () => {
  const bench = new Bench()
  bench.register(1, { batchSize: 32, tokens: 8192 })
  bench.submit([8192, ...Array(31).fill(10)])
  bench.do({ type: 'flush', job: null })
  bench.completeAll()
  for (const { effect } of bench.sent) expect(effect.budgetTokens).toBeLessThanOrEqual(8192)
  expect(bench.settled.length).toBe(32)
})

it('S19: never more than batchSize items', () => {
  const bench = new Bench()
  bench.register(1, { batchSize: 3, tokens: 1e6 })
  bench.submit(Array(7).fill(8))
  expect(bench.sent.map((sent) => sent.ids.length)).toEqual([3, 3])
})

it('S19: never more than maxBatchBytes, counting padded tokens, ids, payloads and 64 an item', () => {
  const each = 64 * 4 + 2 + 64
  const bench = new Bench({ maxBatchBytes: 3 * each, maxItemBytes: 1024 })
  bench.register(1, { batchSize: 8, tokens: 1e6 })
  bench.submit(Array(8).fill(64))
  bench.do({ type: 'flush', job: null })
  expect(bench.sent[0].ids.length).toBe(3)
  expect(bench.sent[0].effect.closedBy).toBe('byte_limit')
  const payload = new Uint8Array(100)
  const other = new Bench({ maxBatchBytes: 500 })
  other.register(1, { batchSize: 4, tokens: 1e6 })
  other.submit(['a', 'b', 'c', 'd'].map((id) => ({ id, length: 8, payload })))
  expect(other.sent[0].ids.length).toBe(2)
})

it('S21: token_limit when one more would pass the budget, also when batchSize is met too', () => {
  const bench = new Bench({ channelDepth: 3 })
  bench.register(1, { batchSize: 4, tokens: 40 })
  bench.submit(Array(4).fill(8))
  bench.submit([16, 16])
  bench.submit([10, 10])
  expect(bench.sent.map((sent) => sent.effect.closedBy)).toEqual([
    'item_limit',
    'token_limit',
    'token_limit',
  ])
  const both = new Bench()
  both.register(1, { batchSize: 8, tokens: 64 })
  both.submit(Array(8).fill(8))
  expect(both.sent[0].effect.closedBy).toBe('token_limit')
})

it('S21: lane_empty when cleanup took all there was', () => {
  const bench = new Bench()
  bench.register(1)
  bench.submit([8])
  bench.do({ type: 'flush', job: null })
  expect(bench.sent[0].effect.closedBy).toBe('lane_empty')
})

it('S22: fill is budget tokens over the contract’s tokens', () => {
  const bench = new Bench()
  bench.register(1, { batchSize: 8, tokens: 100 })
  bench.submit([20, 20, 21, 24])
  const { effect } = bench.sent[0]
  expect(effect.budgetTokens).toBe(96)
  expect(effect.actualTokens).toBe(85)
  expect(effect.fill).toBe(0.96)
})

it('core: the bytes of items come back as they were submitted', () => {
  const bench = new Bench()
  bench.register(1, { batchSize: 3, tokens: 1e6 })
  const payload = Uint8Array.of(1, 2, 3)
  bench.submit([
    { id: 'one', length: 5, token: 100 },
    { id: 'é2', length: 7, payload },
    { id: '', length: 3, token: 7 },
  ])
  const { items } = bench.core
  const [a, b, c] = bench.sent[0].effect.items
  const tokens = (slot: number) => [
    ...items
      .segmentWords(slot)
      .subarray(
        items.tokensOffset(slot) / 4,
        (items.tokensOffset(slot) + items.tokensBytes(slot)) / 4,
      ),
  ]
  expect(tokens(a)).toEqual([100, 101, 102, 103, 104])
  expect(tokens(b)).toEqual([])
  expect(tokens(c)).toEqual([7, 8, 9])
  const at = items.payloadOffset(b)
  expect([...items.segmentBytes(b).subarray(at, at + items.payloadBytes(b))]).toEqual([1, 2, 3])
  expect(bench.sent[0].ids).toEqual(['one', 'é2', ''])
})

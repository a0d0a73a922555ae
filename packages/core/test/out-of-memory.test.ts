// S28: a batch that is too much for the device.

import { expect, it } from 'vitest'
import { RESULT_NACK, RESULT_OUT_OF_MEMORY } from '../src/events.js'
import { Bench, type Sent } from './helpers.js'

/** Consumer 1 holds i0 to i7 in a batch; nothing else waits. */
function withBatch(over = {}): Bench {
  const bench = new Bench({ cleanupIdleMs: 1e6, ...over })
  bench.register(1)
  bench.submit(Array(8).fill(8))
  return bench
}

function tooMuch(bench: Bench, sent: Sent): void {
  bench.taken(sent)
  bench.results(sent, Array(sent.ids.length).fill(RESULT_OUT_OF_MEMORY))
}

it('S28: a batch that ran out of memory comes back in halves, at once', () => {
  const bench = withBatch()
  tooMuch(bench, bench.sent[0])
  expect(bench.sent.slice(1).map((sent) => sent.ids)).toEqual([
    ['i0', 'i1', 'i2', 'i3'],
    ['i4', 'i5', 'i6', 'i7'],
  ])
})

it('S28: it counts no failure', () => {
  const bench = withBatch({ maxAttempts: 1 })
  tooMuch(bench, bench.sent[0])
  bench.complete(bench.sent[1])
  bench.complete(bench.sent[2])
  expect(bench.settled.every((end) => end.endsWith('completed'))).toBe(true)
  expect(bench.settled.length).toBe(8)
  expect(bench.core.counts().outOfMemoryBatches).toBe(1)
})

it('S28: the halves are not topped up', () => {
  const bench = withBatch()
  bench.submit(Array(2).fill(8))
  tooMuch(bench, bench.sent[0])
  expect(bench.sent[1].ids.length).toBe(4)
})

it('S28: the consumer’s budget is halved for its next 100 batches', () => {
  const bench = new Bench({ maxQueuedItems: 10_000 })
  bench.register(1)
  bench.submit(Array(8).fill(8))
  tooMuch(bench, bench.sent[0])
  expect(bench.of('budget')).toEqual([{ type: 'budget', consumer: 1, tokens: 32 }])
  expect(bench.core.counts().consumers[0]).toMatchObject({
    effectiveTokens: 32,
    contract: { tokens: 64 },
  })
  bench.submit(Array(1000).fill(8))
  for (let at = 1; bench.sent.length <= 101; at++) bench.complete(bench.sent[at])
  const sizes = bench.sent.slice(1, 102).map((sent) => sent.ids.length)
  expect(sizes).toEqual([...Array(100).fill(4), 8])
  expect(bench.of('budget').at(-1)).toEqual({ type: 'budget', consumer: 1, tokens: 64 })
})

it('S28: batches of its channel that were packed by the old budget halve it once', () => {
  const bench = new Bench({ channelDepth: 3 })
  bench.register(1)
  bench.submit(Array(24).fill(8))
  for (const sent of bench.sent.slice(0, 3)) tooMuch(bench, sent)
  expect(bench.core.counts().consumers[0].effectiveTokens).toBe(32)
  tooMuch(bench, bench.sent[3])
  expect(bench.core.counts().consumers[0].effectiveTokens).toBe(16)
})

it('S28: others of the model keep their budget, and may get the halves', () => {
  const bench = withBatch()
  bench.register(2)
  tooMuch(bench, bench.sent[0])
  const tokens = bench.core.counts().consumers.map((one) => one.effectiveTokens)
  expect(tokens).toEqual([32, 64])
  expect(new Set(bench.sent.slice(1).map((sent) => sent.consumer)).size).toBe(2)
})

it('S28: it goes down to one item, and that fails after maxAttempts for want of memory', () => {
  const bench = new Bench({ maxAttempts: 3 })
  bench.register(1)
  bench.submit(Array(8).fill(8))
  bench.do({ type: 'flush', job: null })
  for (let round = 0; bench.settled.length < 8; round++) {
    expect(round).toBeLessThan(100)
    while (bench.sent.length <= round) {
      bench.advance(100)
      bench.do({ type: 'renew', consumer: 1 })
    }
    tooMuch(bench, bench.sent[round])
  }
  expect(bench.settled.every((end) => end.endsWith('failed'))).toBe(true)
  expect(bench.of('settle').every((effect) => effect.reason === 'out_of_memory')).toBe(true)
  expect(bench.core.counts().consumers[0].effectiveTokens).toBe(8)
})

it('S28: a batch that is partly done halves the rest', () => {
  const bench = withBatch()
  bench.taken(bench.sent[0])
  bench.results(bench.sent[0], [0, 0, 4, 4, 4, 0, 0, 0])
  expect(bench.sent.slice(1).map((sent) => sent.ids)).toEqual([['i2', 'i3'], ['i4']])
})

it('S28: a consumer that has no memory for anything does not livelock', () => {
  const bench = new Bench({ maxDeliveries: 3, maxAttempts: 100 })
  bench.register(1)
  bench.submit(Array(8).fill(8))
  bench.do({ type: 'flush', job: null })
  for (let round = 0; bench.settled.length < 8; round++) {
    while (bench.sent.length <= round) {
      bench.advance(100)
      bench.do({ type: 'renew', consumer: 1 })
    }
    tooMuch(bench, bench.sent[round])
  }
  expect(bench.of('settle').every((effect) => effect.reason === 'max_deliveries')).toBe(true)
})

it('S28: a handler that nacks everything ends its items by maxDeliveries', () => {
  const bench = new Bench({ maxDeliveries: 5 })
  bench.register(1)
  bench.submit(Array(20).fill(8))
  bench.do({ type: 'flush', job: null })
  for (let round = 0; bench.settled.length < 20; round++) {
    expect(round).toBeLessThan(1000)
    while (bench.sent.length <= round) {
      bench.advance(1000)
      bench.do({ type: 'renew', consumer: 1 })
    }
    const sent = bench.sent[round]
    bench.taken(sent)
    bench.results(sent, Array(sent.ids.length).fill(RESULT_NACK))
  }
  expect(bench.core.counts().settled).toMatchObject({ failed: 20, completed: 0 })
})

it('S28, S14: a halved budget is no contract of its own when classes are counted', () => {
  const bench = new Bench({ cleanupIdleMs: 1e6 })
  bench.register(1)
  bench.submit(Array(8).fill(8))
  for (let consumer = 2; consumer <= 63; consumer++)
    bench.register(consumer, { batchSize: consumer * 8 })
  tooMuch(bench, bench.sent[0])
  bench.register(64, { batchSize: 9999 })
  bench.register(65, { batchSize: 9998 })
  expect(bench.of('registered').length).toBe(64)
  expect(bench.of('registerRefused')).toMatchObject([{ consumer: 65 }])
})

it('S28: an item over the halved budget goes to a consumer that holds it, or alone', () => {
  const bench = withBatch()
  tooMuch(bench, bench.sent[0])
  bench.complete(bench.sent[1])
  bench.complete(bench.sent[2])
  bench.submit([40])
  expect(bench.sent[3].effect.closedBy).toBe('alone')
  bench.register(2)
  bench.complete(bench.sent[3])
  bench.submit([40])
  bench.do({ type: 'flush', job: null })
  expect(bench.sent[4].consumer).toBe(2)
})

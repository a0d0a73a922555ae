// Registration: what is refused, what is warned of, and what the core counts of a consumer.

import { expect, it } from 'vitest'
import { CoreBug } from '../src/core-bug.js'
import { Bench, MS } from './helpers.js'

it.each([
  ['batchSize', 0],
  ['batchSize', 2 ** 20 + 1],
  ['batchSize', 1.5],
  ['tokens', 0],
  ['tokens', 2 ** 31],
  ['tokens', Number.NaN],
  ['inputLength', 0],
  ['inputLength', 2 ** 31],
  ['model', -1],
  ['model', 2 ** 31],
  ['roundTo', 3],
  ['roundTo', 128],
  ['maxInFlight', 0],
  ['maxInFlight', 65],
  ['batchSize', '8'],
  ['layout', 'other'],
])('contract: %s %s is refused, and the field is named', (field, value) => {
  const bench = new Bench()
  bench.register(1, { [field]: value })
  expect(bench.of('registerRefused')).toMatchObject([
    { consumer: 1, code: 'FABRIC_CONTRACT_INVALID', field },
  ])
  expect(bench.core.counts().consumers).toEqual([])
  expect(bench.core.counts().models).toEqual([])
})

it('contract: the ends of each range are taken', () => {
  const bench = new Bench()
  bench.register(1, { batchSize: 1, tokens: 1, inputLength: 1, model: 0, roundTo: 1 })
  bench.register(2, {
    batchSize: 2 ** 20,
    tokens: 2 ** 31 - 1,
    inputLength: 2 ** 31 - 1,
    model: 2 ** 31 - 1,
    roundTo: 64,
    maxInFlight: 64,
  })
  expect(bench.of('registered').length).toBe(2)
})

it('contract: one that cannot hold an item of its own input length is a warning', () => {
  const bench = new Bench()
  bench.register(1, { tokens: 504, inputLength: 500 })
  bench.register(2, { tokens: 503, inputLength: 500, model: 2 })
  expect(bench.of('registered').map((effect) => effect.warnings.length)).toEqual([0, 1])
})

it('core: what only a defect can ask for stops it', () => {
  const bench = new Bench()
  bench.register(1)
  expect(() => bench.register(1)).toThrow(CoreBug)
  expect(() => bench.do({ type: 'flush', job: 7 })).toThrow(CoreBug)
  expect(() => bench.submit([8], 7)).toThrow(CoreBug)
  expect(() => bench.do({ type: 'createJob', job: 0 })).toThrow(CoreBug)
  expect(() => bench.submit([0])).toThrow(CoreBug)
  bench.now = -1
  expect(() => bench.do({ type: 'tick' })).toThrow(CoreBug)
})

it('counts: idle time is that with an empty channel and nothing in flight', () => {
  const bench = new Bench({ leaseTimeoutMs: 1e9 })
  const idle = () => bench.core.counts().consumers[0].idleNs / MS
  bench.register(1)
  bench.advance(10)
  expect(idle()).toBe(10)
  bench.submit([64])
  bench.advance(10)
  bench.taken(bench.sent[0])
  bench.advance(10)
  expect(idle()).toBe(10)
  bench.results(bench.sent[0], [0])
  bench.advance(5)
  expect(idle()).toBe(15)
  bench.do({ type: 'drain', consumer: 1 })
  bench.advance(5)
  expect(idle()).toBe(15)
})

it('counts: idle time during input runs from the first dispatch to the end of input', () => {
  const bench = new Bench({ leaseTimeoutMs: 1e9, cleanupIdleMs: 1e6 })
  const idle = () => bench.core.counts().consumers[0].idleNsDuringInput / MS
  bench.register(1)
  bench.advance(10)
  bench.submit([64])
  bench.complete(bench.sent[0])
  bench.advance(7)
  expect(idle()).toBe(7)
  expect(bench.core.counts().models[0]).toMatchObject({
    firstDispatchAt: 10 * MS,
    inputEndedAt: null,
  })
  bench.do({ type: 'flush', job: null })
  bench.advance(5)
  expect(idle()).toBe(7)
  expect(bench.core.counts().models[0].inputEndedAt).toBe(17 * MS)
  bench.submit([64])
  bench.complete(bench.sent[1])
  bench.advance(2)
  expect(idle()).toBe(9)
})

it('counts: the age of the oldest item is that of the oldest head', () => {
  const bench = new Bench({ releaseThreshold: 1e9, gateMaxHoldMs: 0 })
  bench.register(1)
  expect(bench.core.counts().oldestItemAgeNs).toBe(0)
  bench.submit([8])
  bench.advance(3)
  bench.submit([16])
  expect(bench.core.counts().oldestItemAgeNs).toBe(3 * MS)
})

it('core: timers are told exactly, and Infinity when nothing waits for a time', () => {
  const bench = new Bench({ leaseTimeoutMs: 300 })
  expect(bench.core.nextTimerAt()).toBe(Number.POSITIVE_INFINITY)
  bench.register(1)
  expect(bench.core.nextTimerAt()).toBe(100 * MS)
  bench.now = 40 * MS
  bench.do({ type: 'renew', consumer: 1 })
  expect(bench.core.nextTimerAt()).toBe(140 * MS)
  bench.do({ type: 'disconnect', consumer: 1, cause: 'connection_closed' })
  expect(bench.core.nextTimerAt()).toBe(Number.POSITIVE_INFINITY)
})

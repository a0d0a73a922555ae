// S1 to S6: staging, activation, idle lanes, input length, over-budget items, unserved models.

import { expect, it } from 'vitest'
import { Bench } from './helpers.js'

const tiers = (bench: Bench) => bench.core.counts().queue

it('S1: an item goes to staging while its shape is no lane, to the lane afterwards', () => {
  const bench = new Bench({ activationThreshold: 2, releaseThreshold: 1e9 })
  bench.register(1)
  bench.submit([8])
  expect([tiers(bench).staging.items, tiers(bench).lane.items]).toEqual([1, 0])
  bench.submit([8, 8])
  expect([tiers(bench).staging.items, tiers(bench).lane.items]).toEqual([0, 3])
  bench.submit([5])
  expect(tiers(bench).lane).toEqual({ items: 4, tokens: 29 })
})

it('S1, S20: items of a shape leave in the order of their arrival, across staging and lane', () => {
  const bench = new Bench()
  bench.submit([8, 8, 8])
  bench.register(1)
  bench.submit([8, 8, 8, 8, 8])
  expect(bench.sent[0].ids).toEqual(['i0', 'i1', 'i2', 'i3', 'i4', 'i5', 'i6', 'i7'])
})

it('S2: a shape becomes a lane at its smallest full count over the consumers that hold it', () => {
  const bench = new Bench({ releaseThreshold: 1e9 })
  bench.register(1, { batchSize: 8, tokens: 64 })
  bench.register(2, { batchSize: 3, tokens: 1024 })
  bench.register(3, { batchSize: 1, tokens: 8 })
  bench.submit([16, 16])
  expect(bench.of('activate')).toEqual([])
  bench.submit([16])
  expect(bench.of('activate')).toEqual([{ type: 'activate', model: 1, paddedLength: 16 }])
})

it('S2: staged shapes are looked at again, in order of length, when a consumer registers', () => {
  const bench = new Bench({ releaseThreshold: 1e9 })
  bench.submit([64, 64, 8, 24, 24, 24])
  expect(bench.of('activate')).toEqual([])
  bench.register(1, { batchSize: 2 })
  expect(bench.of('activate').map((effect) => effect.paddedLength)).toEqual([24, 64])
})

it('S2: an own activation threshold counts instead', () => {
  const bench = new Bench({ activationThreshold: 5, releaseThreshold: 1e9 })
  bench.register(1, { batchSize: 2 })
  bench.submit([8, 8, 8, 8])
  expect(bench.of('activate')).toEqual([])
  bench.submit([8])
  expect(bench.of('activate').length).toBe(1)
})

it('S2: without a consumer that holds it a shape stays staged, whatever its count', () => {
  const bench = new Bench({ activationThreshold: 1, releaseThreshold: 1e9 })
  bench.register(1, { tokens: 64 })
  bench.submit([72, 72, 72])
  expect(tiers(bench).staging.items).toBe(3)
})

it('S3: a lane that has been empty for laneIdle is a lane no more', () => {
  const bench = new Bench({ laneIdleMs: 1000 })
  bench.register(1)
  bench.submit(Array(8).fill(8))
  expect(bench.core.counts().lanesActive).toBe(1)
  bench.advance(600)
  bench.submit(Array(8).fill(8))
  bench.advance(999)
  expect(bench.core.counts().lanesActive).toBe(1)
  bench.advance(1)
  expect(bench.core.counts().lanesActive).toBe(0)
  bench.submit([8])
  expect(tiers(bench).staging.items).toBe(1)
})

it('S3: a lane that got an item in time stays a lane', () => {
  const bench = new Bench({ laneIdleMs: 10, cleanupIdleMs: 1e6 })
  bench.register(1)
  bench.submit(Array(8).fill(8))
  bench.advance(5)
  bench.submit([8])
  bench.advance(10_000)
  expect(bench.core.counts().lanesActive).toBe(1)
})

it('S4: the broker dispatches items that are longer than the consumer’s input length', () => {
  const bench = new Bench()
  bench.register(1, { inputLength: 16 })
  bench.submit([60])
  expect(bench.sent.map((sent) => sent.ids)).toEqual([['i0']])
})

it('S4: an item prefers a consumer that takes it whole, though another waited longer', () => {
  const bench = new Bench()
  bench.register(1, { inputLength: 16 })
  bench.register(2, { inputLength: 64 })
  bench.submit([60])
  expect(bench.sent.map((sent) => sent.consumer)).toEqual([2])
})

it('S4: it does not wait for that consumer', () => {
  const bench = new Bench()
  bench.register(1, { inputLength: 16 })
  bench.register(2, { inputLength: 64 })
  bench.submit([60, 60, 60])
  expect(bench.sent.map((sent) => sent.consumer)).toEqual([2, 2, 1])
})

it('S4: a lane that the better consumer is not ready for goes to the other', () => {
  const bench = new Bench()
  bench.register(1, { inputLength: 16, tokens: 64, batchSize: 2 })
  bench.register(2, { inputLength: 64, tokens: 4096, batchSize: 64 })
  bench.submit([32, 32])
  expect(bench.sent.map((sent) => sent.consumer)).toEqual([1])
})

it('S4: differing input lengths of one model are a warning at registration', () => {
  const bench = new Bench()
  bench.register(1, { inputLength: 64 })
  bench.register(2, { inputLength: 64, tokens: 128 })
  bench.register(3, { inputLength: 32 })
  const warnings = bench.of('registered').map((effect) => effect.warnings.length)
  expect(warnings).toEqual([0, 0, 1])
})

it('S5: an item over every budget goes alone, to a consumer with the greatest', () => {
  const bench = new Bench()
  bench.register(1, { tokens: 32 })
  bench.register(2, { tokens: 64 })
  bench.submit([65])
  expect(bench.sent.map((sent) => sent.consumer)).toEqual([2])
  expect(bench.sent[0].effect).toMatchObject({ closedBy: 'alone', size: 1, normal: false })
  expect(bench.sent[0].effect.fill).toBe(72 / 64)
  expect(bench.core.counts().aloneBatches).toBe(1)
})

it('S5: an item that another consumer holds is not dispatched alone: it waits for that one', () => {
  const bench = new Bench()
  bench.register(1, { tokens: 32 })
  bench.register(2, { tokens: 128 })
  bench.do({ type: 'room', consumer: 2, hasRoom: false })
  bench.submit([65])
  expect(bench.sent).toEqual([])
  bench.do({ type: 'room', consumer: 2, hasRoom: true })
  expect(bench.sent.map((sent) => sent.consumer)).toEqual([2])
  expect(bench.sent[0].effect.closedBy).toBe('token_limit')
})

it('S5: an item that only the greater of two consumers holds waits for a full batch there', () => {
  const bench = new Bench()
  bench.register(1, { tokens: 32 })
  bench.register(2, { tokens: 128 })
  bench.submit([40, 40])
  expect(bench.sent).toEqual([])
  bench.submit([40])
  expect(bench.sent.map((sent) => sent.ids.length)).toEqual([3])
})

it('S5: over-budget items never block what is behind them, nor are blocked by it', () => {
  const bench = new Bench({ channelDepth: 4 })
  bench.register(1, { tokens: 64 })
  bench.do({ type: 'room', consumer: 1, hasRoom: false })
  bench.submit([100, 100, 100, 100, 64, 64, 64, 64])
  bench.do({ type: 'room', consumer: 1, hasRoom: true })
  const closed = bench.sent.map((sent) => sent.effect.closedBy)
  expect(closed).toEqual(['alone', 'token_limit', 'alone', 'token_limit'])
})

it('S5: off by one: a budget of 512 holds an item of 512, not one of 513', () => {
  const bench = new Bench({ channelDepth: 4 })
  bench.register(1, { tokens: 512 })
  bench.submit([505, 512, 513])
  const closed = bench.sent.map((sent) => [sent.ids[0], sent.effect.closedBy])
  expect(closed).toContainEqual(['i0', 'token_limit'])
  expect(closed).toContainEqual(['i1', 'token_limit'])
  expect(closed).toContainEqual(['i2', 'alone'])
})

it('S6: items of a model that nobody serves wait, are counted, and count for no gate', () => {
  const bench = new Bench({ releaseThreshold: 100 })
  bench.register(1)
  bench.submit([{ id: 'a', length: 500, model: 9 }])
  bench.do({ type: 'flush', job: null })
  expect(bench.core.counts().gate.open).toBe(false)
  expect(bench.core.counts().gate.heldTokens).toBe(0)
  expect(bench.core.counts().unservedItems).toEqual([{ model: 9, items: 1 }])
  bench.register(2, { model: 9 })
  expect(bench.sent.map((sent) => sent.ids)).toEqual([['a']])
})

it('S6: unserved items do not keep another model’s flushed job behind the gate', () => {
  const bench = new Bench({ releaseThreshold: 1000 })
  bench.do({ type: 'createJob', job: 1 })
  bench.submit([{ id: 'a', length: 8, model: 9 }])
  bench.submit([{ id: 'b', length: 8 }], 1)
  bench.register(1)
  bench.do({ type: 'flush', job: 1 })
  expect(bench.sent.map((sent) => sent.ids)).toEqual([['b']])
})

// S7, S9, S10: the release gate.

import { expect, it } from 'vitest'
import { asPublished, Bench } from './helpers.js'

const reasons = (bench: Bench) => bench.of('gate').map((effect) => effect.reason)

it('S7: the default threshold is tokens x (channelDepth + 1) over all consumers', () => {
  const bench = new Bench({ releaseThreshold: null })
  bench.register(1, { tokens: 64 })
  bench.register(2, { tokens: 100 })
  expect(bench.core.counts().gate.thresholdTokens).toBe(164 * 3)
  bench.do({ type: 'disconnect', consumer: 1, cause: 'connection_closed' })
  expect(bench.core.counts().gate.thresholdTokens).toBe(300)
})

it('S7: the default threshold is at most half of maxQueuedTokens', () => {
  const bench = new Bench({ releaseThreshold: null, maxQueuedTokens: 101 })
  bench.register(1, { tokens: 64 })
  expect(bench.core.counts().gate.thresholdTokens).toBe(50)
})

it('S7: it opens when the threshold is held and a normal batch is ready', () => {
  const bench = new Bench({ releaseThreshold: 64 })
  bench.register(1)
  bench.submit([8, 8, 8, 8, 8, 8, 8])
  expect(reasons(bench)).toEqual([])
  expect(bench.core.counts().gate.progress).toBe(56 / 64)
  bench.submit([8])
  expect(reasons(bench)).toEqual(['threshold'])
  expect(bench.sent.length).toBe(1)
})

it('S7: a threshold without a ready batch does not open it, twice the threshold does', () => {
  const bench = new Bench({ releaseThreshold: 24 })
  bench.register(1)
  bench.submit([8, 16])
  expect(reasons(bench)).toEqual([])
  bench.submit([7, 15])
  expect(reasons(bench)).toEqual([])
  bench.submit([2])
  expect(reasons(bench)).toEqual(['threshold'])
})

it('S7: the gate counts actual tokens, not padded ones', () => {
  const bench = new Bench({ releaseThreshold: 64 })
  bench.register(1)
  bench.submit(Array(8).fill(1))
  expect(bench.core.counts().gate.heldTokens).toBe(8)
  expect(reasons(bench)).toEqual([])
})

it('S7: it stays closed while no consumer is registered', () => {
  const bench = new Bench({ releaseThreshold: 1, gateMaxHoldMs: 10 })
  bench.submit(Array(100).fill(8))
  bench.do({ type: 'flush', job: null })
  bench.advance(1000)
  expect(reasons(bench)).toEqual([])
})

it('S7: nor does a threshold of nothing open it without a consumer', () => {
  for (const releaseThreshold of [null, 0]) {
    const bench = new Bench({ releaseThreshold })
    bench.submit([8])
    expect(reasons(bench)).toEqual([])
  }
})

it('S9: once open it stays open', () => {
  const bench = new Bench({ releaseThreshold: 64 })
  bench.register(1)
  bench.submit(Array(8).fill(8))
  bench.completeAll()
  bench.do({ type: 'disconnect', consumer: 1, cause: 'connection_closed' })
  bench.register(2)
  bench.submit([64])
  expect(reasons(bench)).toEqual(['threshold'])
  expect(bench.sent.length).toBe(2)
})

it('S10: it opens on flush when every job with waiting items has ended its input', () => {
  const bench = new Bench({ releaseThreshold: 1000 })
  bench.do({ type: 'createJob', job: 1 })
  bench.do({ type: 'createJob', job: 2 })
  bench.register(1)
  bench.submit([8], 1)
  bench.submit([8], 2)
  bench.do({ type: 'flush', job: 1 })
  expect(reasons(bench)).toEqual([])
  bench.do({ type: 'flush', job: 2 })
  expect(reasons(bench)).toEqual(['flush'])
})

it('S10: a flush is remembered until a consumer registers', () => {
  const bench = new Bench({ releaseThreshold: 1000 })
  bench.submit([8])
  bench.do({ type: 'flush', job: null })
  expect(reasons(bench)).toEqual([])
  bench.register(1)
  expect(reasons(bench)).toEqual(['flush'])
  expect(bench.sent.length).toBe(1)
})

it('S10: a flushed job that gets new items has input again', () => {
  const bench = new Bench({ releaseThreshold: 1000 })
  bench.submit([8])
  bench.do({ type: 'flush', job: 0 })
  bench.submit([8])
  bench.register(1)
  expect(reasons(bench)).toEqual([])
})

it('S10: it opens when the oldest held item has waited gateMaxHold', () => {
  const bench = new Bench({ releaseThreshold: 1000, gateMaxHoldMs: 100 })
  bench.register(1)
  bench.advance(70)
  bench.submit([8])
  bench.advance(50)
  bench.submit([8])
  bench.advance(49)
  expect(reasons(bench)).toEqual([])
  bench.advance(1)
  expect(bench.of('gate')).toEqual([{ type: 'gate', reason: 'max_hold', heldNs: 100_000_000 }])
})

it('S10: gateMaxHold counts from acceptance, also before a consumer came', () => {
  const bench = new Bench({ releaseThreshold: 1000, gateMaxHoldMs: 100 })
  bench.submit([8])
  bench.advance(80)
  bench.register(1)
  bench.advance(20)
  expect(reasons(bench)).toEqual(['max_hold'])
})

it('S10: gateMaxHold 0 means never', () => {
  const bench = new Bench({ releaseThreshold: 1000, gateMaxHoldMs: 0 })
  bench.register(1)
  bench.submit([8])
  bench.advance(1e6)
  expect(reasons(bench)).toEqual([])
})

it('S10: it opens when a submission is refused for room', () => {
  const bench = new Bench({ releaseThreshold: 1000, maxQueuedItems: 3 })
  bench.register(1)
  bench.submit([8, 8, 8])
  expect(reasons(bench)).toEqual([])
  bench.submit([8])
  expect(reasons(bench)).toEqual(['full'])
})

it('S10, plain: the gate opens at the threshold and on nothing else', () => {
  const bench = new Bench({ ...asPublished, releaseThreshold: 24, maxQueuedItems: 3 })
  bench.register(1)
  bench.submit([8])
  bench.do({ type: 'flush', job: null })
  bench.advance(1e6)
  bench.submit([1, 1, 1, 1])
  expect(reasons(bench)).toEqual([])
  const other = new Bench({ ...asPublished, releaseThreshold: 24 })
  other.register(1)
  other.submit([8, 16])
  expect(reasons(other)).toEqual(['threshold'])
})

it('I3: nothing is dispatched while the gate is closed', () => {
  const bench = new Bench({ releaseThreshold: 10_000 })
  bench.register(1)
  bench.submit(Array(64).fill(8))
  expect(bench.sent).toEqual([])
})

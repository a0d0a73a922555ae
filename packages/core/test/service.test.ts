// S11 to S14: whom to serve, in what order, with which lane.

import { expect, it } from 'vitest'
import { CONTRACT_CLASSES_MAX } from '../src/contracts.js'
import { Core } from '../src/core.js'
import type { CoreConfig } from '../src/core-config.js'
import { asPublished, Bench, block, config, contract, MS } from './helpers.js'

const consumers = (bench: Bench) => bench.sent.map((sent) => sent.consumer)
const lengths = (bench: Bench) => bench.sent.map((sent) => sent.effect.paddedLength)

it('S11: the consumer that holds fewest batches is served first', () => {
  const bench = new Bench()
  bench.register(1)
  bench.submit([64])
  bench.register(2)
  bench.submit([64, 64])
  expect(consumers(bench)).toEqual([1, 2, 1])
})

it('S11: batches in flight count as held', () => {
  const bench = new Bench()
  bench.register(1)
  bench.submit([64])
  bench.taken(bench.sent[0])
  bench.register(2)
  bench.submit([64])
  expect(consumers(bench)).toEqual([1, 2])
})

it('S11: of equals the one that waited longest, and after a batch it queues anew', () => {
  const bench = new Bench({ channelDepth: 1 })
  for (const consumer of [3, 1, 2]) bench.register(consumer)
  bench.submit([64, 64, 64])
  expect(consumers(bench)).toEqual([3, 1, 2])
  for (const sent of [bench.sent[1], bench.sent[0], bench.sent[2]]) bench.complete(sent)
  bench.submit([64, 64, 64])
  expect(consumers(bench).slice(3)).toEqual([1, 3, 2])
})

it('S11: a consumer queues anew after each batch, also when it always had a place', () => {
  const bench = new Bench()
  bench.register(1)
  bench.register(2)
  bench.submit([64])
  bench.complete(bench.sent[0])
  bench.submit([64])
  expect(consumers(bench)).toEqual([1, 2])
})

it('S11: when nothing is ready for the first, the next is tried', () => {
  const bench = new Bench()
  bench.register(1, { batchSize: 64, tokens: 4096 })
  bench.register(2, { batchSize: 2 })
  bench.submit([8, 8])
  expect(consumers(bench)).toEqual([2])
})

it('S11, plain: only the first waiting consumer counts', () => {
  const bench = new Bench({ serve: 'first' })
  bench.register(1, { batchSize: 64, tokens: 4096 })
  bench.register(2, { batchSize: 2 })
  bench.submit([8, 8])
  expect(consumers(bench)).toEqual([])
})

it('S11: a consumer that waits for its model does not hold up another model’s', () => {
  for (const serve of ['next', 'first'] as const) {
    const bench = new Bench({ serve })
    bench.register(1, { model: 1 })
    bench.register(2, { model: 2 })
    bench.submit([{ id: 'a', length: 64, model: 2 }])
    expect(consumers(bench)).toEqual([2])
  }
})

it('S11: a tail with fewer full batches than places gives each channel one at most', () => {
  const bench = new Bench()
  bench.submit([64, 64])
  bench.do({ type: 'flush', job: null })
  bench.register(1)
  expect(consumers(bench)).toEqual([1])
  bench.register(2)
  expect(consumers(bench)).toEqual([1, 2])
})

it('S11: in a tail a consumer gets its next batch when it has taken the last', () => {
  const bench = new Bench()
  bench.submit([64, 64])
  bench.do({ type: 'flush', job: null })
  bench.register(1)
  bench.taken(bench.sent[0])
  expect(consumers(bench)).toEqual([1, 1])
})

it('S11: with more to come, a channel is filled', () => {
  const bench = new Bench()
  bench.submit([64, 64, 64])
  bench.register(1)
  expect(consumers(bench)).toEqual([1, 1])
})

it('S12: reclaimed items go before lanes, topped up with lane items of their shape', () => {
  const bench = new Bench({ channelDepth: 1, cleanupIdleMs: 1e6, leaseMaxMs: 1000 })
  bench.register(1)
  bench.submit(Array(8).fill(8))
  bench.submit([8, 8])
  bench.taken(bench.sent[0])
  bench.results(bench.sent[0], [0, 0, 0, 0, 0])
  bench.do({ type: 'room', consumer: 1, hasRoom: false })
  bench.submit([64])
  bench.advance(1000)
  bench.do({ type: 'room', consumer: 1, hasRoom: true })
  const first = bench.sent[1]
  expect(first.ids).toEqual(['i5', 'i6', 'i7', 'i8', 'i9'])
  expect(first.effect).toMatchObject({ source: 'reclaimed', normal: false })
  expect(first.effect.sources).toMatchObject({ reclaimed: 3, lane: 2 })
})

it('S12: what was reclaimed is repacked for the contract of whoever gets it', () => {
  const bench = new Bench()
  bench.register(1, { batchSize: 8 })
  bench.submit(Array(8).fill(8))
  bench.register(2, { batchSize: 3, tokens: 24 })
  bench.do({ type: 'drain', consumer: 1 })
  expect(bench.sent.slice(1).map((sent) => sent.ids)).toEqual([
    ['i0', 'i1', 'i2'],
    ['i3', 'i4', 'i5'],
  ])
  bench.completeAll()
  expect(bench.settled.length).toBe(8)
})

it('S13: a lane is ready at its full count of that consumer, by budget or by items', () => {
  const bench = new Bench()
  bench.register(1, { batchSize: 8, tokens: 64 })
  bench.submit([16, 16, 16])
  expect(bench.sent.length).toBe(0)
  bench.submit([16])
  expect(bench.sent.map((sent) => sent.ids.length)).toEqual([4])
  bench.submit(Array(7).fill(3))
  expect(bench.sent.length).toBe(1)
  bench.submit([3])
  expect(bench.sent[1].ids.length).toBe(8)
})

it('S13, plain: a lane is ready at batchSize items, whatever the budget', () => {
  const bench = new Bench({ readyRule: 'batch-size', cleanupIdleMs: 1e6 })
  bench.register(1, { batchSize: 8, tokens: 64 })
  bench.submit(Array(7).fill(16))
  expect(bench.sent.length).toBe(0)
  bench.submit([16])
  expect(bench.sent.map((sent) => sent.ids.length)).toEqual([4])
})

it('S13: the search starts after the lane served last, and goes round', () => {
  const bench = new Bench({ channelDepth: 7 })
  bench.submit([24, 24, 24, 24, 40, 40, 64, 64, 16, 16, 16, 16])
  bench.register(1)
  expect(lengths(bench)).toEqual([16, 24, 40, 64, 24, 40, 64])
})

it('S13: only normal batches move the pointer', () => {
  const bench = new Bench({ channelDepth: 1 })
  bench.register(1)
  bench.submit([40])
  bench.submit([48, 32, 32, 56, 100])
  bench.complete(bench.sent[0])
  expect(lengths(bench)).toEqual([40, 104])
  bench.complete(bench.sent[1])
  bench.complete(bench.sent[2])
  expect(lengths(bench)).toEqual([40, 104, 48, 56])
})

it('S13: the pointer is the model’s, not the consumer’s', () => {
  const bench = new Bench({ channelDepth: 1 })
  bench.submit([40, 48, 56])
  for (const consumer of [1, 2, 3]) bench.register(consumer)
  expect(lengths(bench)).toEqual([40, 48, 56])
})

it('S14: at most 64 contract classes a model, and a clear refusal', () => {
  const bench = new Bench()
  for (let i = 1; i <= CONTRACT_CLASSES_MAX; i++) bench.register(i, { tokens: 64 * i })
  bench.register(100, { tokens: 64 })
  bench.register(101, { tokens: 7 })
  bench.register(102, { tokens: 7, model: 2 })
  expect(CONTRACT_CLASSES_MAX).toBe(64)
  expect(bench.of('registerRefused').map((effect) => [effect.consumer, effect.code])).toEqual([
    [101, 'FABRIC_CONTRACT_CLASSES'],
  ])
  bench.do({ type: 'disconnect', consumer: 64, cause: 'connection_closed' })
  bench.register(103, { tokens: 7 })
  expect(bench.of('registerRefused').length).toBe(1)
})

it('S14: arrival and search cost about the same with 50 times the lanes and 1,000 consumers', () => {
  const few = new Timing(1000, 1)
  const many = new Timing(50_000, 1000)
  // The best of several turns: other processes may only make one slower.
  const best = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
  for (let turn = 0; turn < 4; turn++) {
    best[0] = Math.min(best[0], few.run())
    best[1] = Math.min(best[1], many.run())
  }
  expect(best[1]).toBeLessThan(best[0] * 10)
})

/** Arrivals into lanes that never fill, each followed by a search that finds nothing. */
class Timing {
  private readonly core = new Core(
    config({ channelDepth: 1, cleanupIdleMs: 1e9, gateMaxHoldMs: 0, maxQueuedTokens: 1e12 }),
  )
  private turns = 0

  constructor(
    private readonly lanes: number,
    consumers: number,
  ) {
    const made = contract({ batchSize: 1000, tokens: 2 ** 31 - 1 })
    for (let consumer = 1; consumer <= consumers; consumer++) {
      this.core.step({ type: 'register', consumer, name: 'gpu', contract: made }, 0)
    }
    const all = Array.from({ length: lanes }, (_, lane) => this.spec(lane))
    this.core.step({ type: 'submit', block: block(all) }, 0)
    expect(this.core.counts().waiting.items).toBe(lanes)
  }

  run(): number {
    this.turns++
    const blocks = Array.from({ length: 1500 }, (_, i) => block([this.spec((i * 37) % this.lanes)]))
    const start = performance.now()
    for (const one of blocks) {
      this.core.step({ type: 'submit', block: one }, 0)
      this.core.step({ type: 'dispatch' }, 0)
    }
    return performance.now() - start
  }

  private spec(lane: number) {
    const id = `${this.turns}-${lane}`
    return { id, length: 8 * (1 + lane), payload: new Uint8Array(1) }
  }
}

it('core: as published, a stream and its tail go through', () => {
  const bench = new Bench({ ...asPublished, releaseThreshold: 64 })
  bench.register(1)
  bench.register(2, { batchSize: 4 })
  for (let i = 0; i < 50; i++) {
    bench.submit([8, 16, 24, 40])
    bench.advance(1)
  }
  bench.do({ type: 'flush', job: null })
  bench.completeAll()
  expect(bench.settled.length).toBe(200)
  expect(bench.core.counts().waiting.items).toBe(0)
})

/** Three lanes of eight full batches each for two consumers, served one batch at a time. */
function threeLanes(over: Partial<CoreConfig>): Bench {
  const bench = new Bench({ channelDepth: 1, ...over })
  bench.submit([8, 16, 32].flatMap((length) => Array(512 / length).fill(length)))
  bench.register(1)
  bench.register(2)
  for (let i = 0; i < 22; i++) bench.complete(bench.sent[i])
  return bench
}

const lengthsOf = (bench: Bench, consumer: number) =>
  bench.sent.filter((sent) => sent.consumer === consumer).map((sent) => sent.effect.paddedLength)

it('S15: with affinity a consumer keeps its lane while that is ready, for affinityRun batches', () => {
  const bench = threeLanes({ laneOrder: 'affinity', affinityRun: 4 })
  expect(lengthsOf(bench, 1).slice(0, 12)).toEqual([8, 8, 8, 8, 32, 32, 32, 32, 16, 16, 16, 16])
  expect(lengthsOf(bench, 2).slice(0, 12)).toEqual([16, 16, 16, 16, 8, 8, 8, 8, 32, 32, 32, 32])
})

it('S15: a lane that is not ready any more ends the run', () => {
  const bench = threeLanes({ laneOrder: 'affinity', affinityRun: 100 })
  expect(lengthsOf(bench, 1)).toEqual([...Array(8).fill(8), ...Array(4).fill(32)])
  expect(lengthsOf(bench, 2)).toEqual([...Array(8).fill(16), ...Array(4).fill(32)])
})

it('S15: by default the round goes on with each batch', () => {
  const bench = threeLanes({})
  expect(bench.sent.slice(0, 6).map((sent) => sent.effect.paddedLength)).toEqual([
    8, 16, 32, 8, 16, 32,
  ])
})

it('S15: affinity changes shapes less often than the round', () => {
  const switches = (over: Partial<CoreConfig>) =>
    threeLanes(over)
      .core.counts()
      .consumers.reduce((sum, consumer) => sum + consumer.shapeSwitches, 0)
  expect(switches({ laneOrder: 'affinity' })).toBeLessThan(switches({}) / 4)
})

it('S15: the batches of a run do not send the next consumer to its lane', () => {
  const bench = new Bench({ channelDepth: 1, laneOrder: 'affinity', affinityRun: 4 })
  bench.submit([8, 16, 32].flatMap((length) => Array(512 / length).fill(length)))
  bench.register(1)
  bench.register(2)
  for (let i = 0; i < 7; i++) bench.complete(bench.sent.filter((sent) => sent.consumer === 1)[i])
  // Consumer 2 still works on its first batch, of length 16: consumer 1 goes on to 32.
  expect(lengthsOf(bench, 2)).toEqual([16])
  expect(lengthsOf(bench, 1)).toEqual([8, 8, 8, 8, 32, 32, 32, 32])
})

it('timers: renewals and what is to be forgotten are told apart from what may move work on', () => {
  const bench = new Bench({ releaseThreshold: 1_000_000 })
  bench.register(1)
  expect(bench.core.nextTimerAt()).toBeLessThan(Number.POSITIVE_INFINITY)
  expect(bench.core.nextWorkAt()).toBe(Number.POSITIVE_INFINITY)
  bench.submit([8])
  expect(bench.core.nextWorkAt()).toBe(30_000 * MS) // the gate's longest hold
  expect(bench.core.nextTimerAt()).toBe(10_000 * MS) // the renewal
})

// S29 to S33: how the tail leaves.

import { expect, it } from 'vitest'
import { Bench } from './helpers.js'

/** A tail of eight shapes that takes three batches of 128 tokens. */
const LONG_TAIL = [60, 50, 44, 36, 28, 20, 12, 4]

function withLongTail(): Bench {
  const bench = new Bench()
  bench.register(1, { tokens: 128, batchSize: 16 })
  bench.submit(LONG_TAIL)
  bench.do({ type: 'flush', job: null })
  return bench
}

const states = (bench: Bench) => bench.of('cleanup').map((effect) => effect.state)

/** One consumer and a tail of four items in two shapes: one batch in cleanup, none before. */
function withTail(over = {}): Bench {
  const bench = new Bench(over)
  bench.register(1)
  bench.submit([8, 8, 16, 12])
  return bench
}

it('S29: it begins at the end of input when channels are empty and nothing is ready', () => {
  const bench = withTail()
  expect(states(bench)).toEqual([])
  bench.do({ type: 'flush', job: null })
  expect(states(bench)[0]).toBe('begin')
})

it('S29: at the end of input a batch in flight does not hold it up, one in the channel does', () => {
  const bench = new Bench()
  bench.register(1)
  bench.submit([64, 8])
  bench.do({ type: 'flush', job: null })
  expect(states(bench)).toEqual([])
  bench.taken(bench.sent[0])
  expect(states(bench)).toEqual(['begin', 'end'])
})

it('S29: it does not begin while one job with waiting items may get more', () => {
  const bench = withTail()
  bench.do({ type: 'createJob', job: 1 })
  bench.submit([8], 1)
  bench.do({ type: 'flush', job: 0 })
  expect(states(bench)).toEqual([])
  bench.do({ type: 'flush', job: 1 })
  expect(states(bench)[0]).toBe('begin')
})

it('S29: without an end of input it begins after cleanupIdle of nothing to do', () => {
  const bench = withTail()
  bench.advance(49)
  expect(states(bench)).toEqual([])
  bench.advance(1)
  expect(states(bench)[0]).toBe('begin')
})

it('S29: an arrival does not restart that time', () => {
  const bench = withTail()
  bench.advance(30)
  bench.submit([24])
  bench.advance(19)
  expect(states(bench)).toEqual([])
  bench.advance(1)
  expect(states(bench)[0]).toBe('begin')
})

it('S29: a dispatch does', () => {
  const bench = withTail()
  bench.advance(30)
  bench.submit([64])
  bench.complete(bench.sent[0])
  bench.advance(49)
  expect(states(bench)).toEqual([])
  bench.advance(1)
  expect(states(bench)[0]).toBe('begin')
})

it('S29: the time runs only while one consumer has nothing in flight', () => {
  const bench = new Bench()
  bench.register(1)
  bench.submit([64, 8])
  bench.taken(bench.sent[0])
  bench.advance(1000)
  expect(states(bench)).toEqual([])
  bench.results(bench.sent[0], [0])
  bench.advance(50)
  expect(states(bench)[0]).toBe('begin')
})

it('S29: every channel must be empty', () => {
  const bench = new Bench()
  bench.register(1)
  bench.register(2)
  bench.submit([64, 8])
  bench.advance(1000)
  expect(states(bench)).toEqual([])
  bench.taken(bench.sent[0])
  bench.advance(50)
  expect(states(bench)[0]).toBe('begin')
})

it('S29: a dispatch to a consumer that does not count restarts it too', () => {
  const bench = new Bench({ leaseTimeoutMs: 300 })
  bench.register(1, { batchSize: 64, tokens: 4096 })
  bench.register(2, { batchSize: 2 })
  for (let i = 0; i < 11; i++) {
    bench.advance(10)
    bench.do({ type: 'renew', consumer: 1 })
  }
  bench.submit([8, 16])
  bench.advance(30)
  bench.do({ type: 'renew', consumer: 1 })
  bench.submit([8])
  expect(bench.sent.map((sent) => sent.consumer)).toEqual([2])
  bench.advance(49)
  expect(states(bench)).toEqual([])
  bench.advance(1)
  expect(states(bench)[0]).toBe('begin')
})

it('S29: so does a break of its conditions', () => {
  const bench = withTail()
  bench.advance(30)
  bench.do({ type: 'disconnect', consumer: 1, cause: 'connection_closed' })
  bench.advance(10)
  bench.register(2)
  bench.advance(49)
  expect(states(bench)).toEqual([])
  bench.advance(1)
  expect(states(bench)[0]).toBe('begin')
})

it('S29: work that is ready and lacks only room in the transport keeps it from beginning', () => {
  const bench = new Bench()
  bench.register(1)
  bench.do({ type: 'room', consumer: 1, hasRoom: false })
  bench.submit([64, 8])
  bench.advance(1000)
  expect(states(bench)).toEqual([])
  bench.do({ type: 'room', consumer: 1, hasRoom: true })
  expect(bench.sent.map((sent) => sent.effect.normal)).toEqual([true])
})

it('S29: cleanupIdle 0 begins at once', () => {
  const bench = withTail({ cleanupIdleMs: 0 })
  expect(states(bench)[0]).toBe('begin')
})

it('S29: it does not begin while the gate is closed', () => {
  const bench = withTail({ releaseThreshold: 1000 })
  bench.advance(10_000)
  expect(states(bench)).toEqual([])
})

it('S29: the channel of a draining consumer does not count', () => {
  const bench = new Bench()
  bench.register(1, { maxInFlight: 2 })
  bench.submit([64])
  bench.taken(bench.sent[0])
  bench.do({ type: 'drain', consumer: 1 })
  bench.register(2)
  bench.submit([8])
  bench.advance(50)
  expect(states(bench)[0]).toBe('begin')
})

it('S29: a draining consumer is none that is idle', () => {
  const bench = new Bench()
  bench.register(1)
  bench.submit([8])
  bench.do({ type: 'drain', consumer: 1 })
  bench.advance(1000)
  expect(states(bench)).toEqual([])
})

it('S29: nor one whose renewal is late by leaseTimeout / 3', () => {
  const bench = new Bench({ leaseTimeoutMs: 300 })
  bench.register(1)
  bench.register(2)
  bench.submit([64, 8])
  const renew = () => bench.do({ type: 'renew', consumer: 2 })
  for (let i = 0; i < 9; i++) {
    bench.advance(10)
    renew()
  }
  expect(states(bench)).toEqual([])
  bench.advance(10)
  bench.advance(49)
  expect(states(bench)).toEqual([])
  bench.advance(1)
  expect(states(bench)[0]).toBe('begin')
  expect(bench.core.counts().consumers[0].overdue).toBe(true)
})

it('S30: while it lasts one item is ready, staged or not', () => {
  const bench = new Bench()
  bench.register(1)
  bench.submit([8])
  bench.do({ type: 'flush', job: null })
  expect(bench.sent[0]).toMatchObject({ ids: ['i0'], effect: { cleanup: true, normal: false } })
  expect(bench.sent[0].effect.source).toBe('staging')
})

it('S31: neighbouring shapes leave together, longest first, padded to the longest', () => {
  const bench = new Bench()
  bench.register(1, { batchSize: 16, tokens: 128 })
  bench.submit([8, 30, 8, 16, 20])
  bench.do({ type: 'flush', job: null })
  expect(bench.sent.map((sent) => sent.ids)).toEqual([['i1', 'i4', 'i3', 'i0']])
  expect(bench.sent[0].effect).toMatchObject({ paddedLength: 32, closedBy: 'token_limit' })
  bench.taken(bench.sent[0])
  expect(bench.sent[1].ids).toEqual(['i2'])
})

it('S31: the tail takes close to the fewest batches', () => {
  const bench = new Bench({ cleanupIdleMs: 1e6 })
  bench.register(1, { batchSize: 64, tokens: 512 })
  const lengths = Array.from({ length: 64 }, (_, i) => 4 + i)
  bench.submit(lengths)
  bench.do({ type: 'flush', job: null })
  bench.completeAll()
  const padded = lengths.reduce((sum, length) => sum + Math.ceil(length / 8) * 8, 0)
  expect(bench.settled.length).toBe(64)
  expect(bench.sent.length).toBeLessThanOrEqual(Math.ceil(padded / 512) + 1)
})

it('S31, plain: shape by shape', () => {
  const bench = new Bench({ cleanupMerge: false })
  bench.register(1, { batchSize: 16, tokens: 128 })
  bench.submit([8, 30, 8, 16])
  bench.do({ type: 'flush', job: null })
  bench.completeAll()
  expect(bench.sent.map((sent) => sent.ids)).toEqual([['i1'], ['i3'], ['i0', 'i2']])
})

it('S31, S11: the tail is spread: one batch per channel', () => {
  const bench = new Bench()
  bench.register(1, { tokens: 128, batchSize: 16 })
  bench.register(2, { tokens: 128, batchSize: 16 })
  bench.submit(LONG_TAIL)
  bench.do({ type: 'flush', job: null })
  expect(bench.sent.map((sent) => sent.consumer)).toEqual([1, 2])
  bench.taken(bench.sent[1])
  expect(bench.sent.map((sent) => sent.consumer)).toEqual([1, 2, 2])
  expect(bench.sent.map((sent) => sent.ids.length)).toEqual([2, 2, 4])
})

it('S32: it ends when staging and lanes are empty', () => {
  const bench = withTail()
  bench.do({ type: 'flush', job: null })
  expect(states(bench)).toEqual(['begin', 'end'])
  expect(bench.of('cleanup')[1]).toMatchObject({ batches: 1, items: 4 })
})

it('S32: it ends at once when a new item of the model is accepted', () => {
  const bench = withLongTail()
  bench.submit([{ id: 'other', length: 8, model: 2 }])
  expect(states(bench)).toEqual(['begin'])
  bench.submit([8])
  expect(states(bench)).toEqual(['begin', 'end'])
  bench.taken(bench.sent[0])
  expect(bench.sent.length).toBe(1)
})

it('S32: reclaimed and retried items are not new', () => {
  const bench = withLongTail()
  bench.taken(bench.sent[0])
  bench.results(bench.sent[0], [2, 2])
  bench.do({ type: 'disconnect', consumer: 1, cause: 'connection_closed' })
  bench.advance(1000)
  expect(states(bench)).toEqual(['begin'])
  bench.register(2, { tokens: 128, batchSize: 16 })
  bench.completeAll()
  expect(states(bench).at(-1)).toBe('end')
  expect(bench.settled.length).toBe(8)
})

it('S32: after an end by arrival it begins again only by S29', () => {
  const bench = withTail()
  bench.advance(50)
  const begun = states(bench).filter((state) => state === 'begin').length
  bench.completeAll()
  bench.submit([8])
  bench.advance(49)
  expect(states(bench).filter((state) => state === 'begin').length).toBe(begun)
  bench.advance(1)
  expect(states(bench).filter((state) => state === 'begin').length).toBe(begun + 1)
})

it('S33: entries, time, batches and items of cleanup are counted', () => {
  const bench = withTail()
  bench.do({ type: 'flush', job: null })
  bench.completeAll()
  const { cleanup } = bench.core.counts()
  expect(cleanup).toMatchObject({ entries: 1, items: 4, models: [] })
  expect(cleanup.batches).toBe(bench.sent.length)
})

it('S33: time spent in cleanup is counted while it goes on, and when it has ended', () => {
  const bench = withLongTail()
  bench.advance(7)
  expect(bench.core.counts().cleanup.ns).toBe(7_000_000)
  bench.completeAll()
  bench.advance(5)
  expect(bench.core.counts().cleanup.ns).toBe(7_000_000)
})

it('B1: one item in each lane drains at the end of input, without a timer', () => {
  const bench = new Bench({ cleanupIdleMs: 1e6 })
  bench.register(1)
  bench.submit([8, 16, 24, 32, 40])
  bench.do({ type: 'flush', job: null })
  bench.completeAll()
  expect(bench.settled.length).toBe(5)
  expect(bench.now).toBe(0)
})

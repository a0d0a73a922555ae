// S35, S36: deadlines, cancel, pause; and why an item waits.

import { expect, it } from 'vitest'
import { RESULT_RETRY } from '../src/events.js'
import { Bench, MS } from './helpers.js'

const item = (id: string, over = {}) => ({ id, length: 8, ...over })

it('S35: a waiting item expires when its deadline passes, and not before', () => {
  const bench = new Bench()
  bench.submit([item('a', { deadlineMs: 100 }), item('b')])
  bench.advance(99)
  expect(bench.settled).toEqual([])
  bench.advance(1)
  expect(bench.settled).toEqual(['a:expired'])
  expect(bench.of('settle')[0]).toMatchObject({ batch: null, reason: 'expired' })
})

it('S35: it expires on time also while every consumer is busy', () => {
  const bench = new Bench({ leaseTimeoutMs: 1e9, channelDepth: 1 })
  bench.register(1)
  bench.submit(Array(8).fill(8))
  bench.taken(bench.sent[0])
  bench.submit(Array(8).fill(8))
  bench.submit([item('late', { deadlineMs: 50 })])
  bench.advance(50)
  expect(bench.settled).toEqual(['late:expired'])
})

it('S35: a leased item that expires settles at once; its batch goes on, its result is dropped', () => {
  const bench = new Bench({ cleanupIdleMs: 1e6 })
  bench.register(1)
  bench.submit([item('a', { deadlineMs: 50 }), ...Array(7).fill(8)])
  bench.taken(bench.sent[0])
  bench.advance(50)
  expect(bench.settled).toEqual(['a:expired'])
  expect(bench.of('settle')[0]).toMatchObject({ consumer: 1, batch: 1 })
  bench.results(bench.sent[0], Array(8).fill(0))
  expect(bench.settled.length).toBe(8)
  expect(bench.of('late')).toMatchObject([{ items: 1, unknownLease: false }])
  expect(bench.of('batchDone').length).toBe(1)
})

it('S35: the deadline of an item that has ended is gone with it', () => {
  const bench = new Bench()
  bench.register(1)
  bench.submit(Array.from({ length: 8 }, (_, i) => item(`a${i}`, { deadlineMs: 500 })))
  bench.complete(bench.sent[0])
  bench.submit(Array.from({ length: 8 }, (_, i) => item(`b${i}`)))
  bench.advance(1000)
  expect(bench.settled.every((end) => end.endsWith('completed'))).toBe(true)
})

it('S35: an item that waits for its retry expires too', () => {
  const bench = new Bench({ retryDelayMs: 10_000 })
  bench.register(1)
  bench.submit([{ id: 'a', length: 64, deadlineMs: 200 }])
  bench.taken(bench.sent[0])
  bench.results(bench.sent[0], [RESULT_RETRY])
  bench.advance(200)
  expect(bench.settled).toEqual(['a:expired'])
  expect(bench.core.counts().queue.retrying).toEqual({ items: 0, tokens: 0 })
})

it('S35: cancelled items settle at once, waiting and leased, and others stay', () => {
  const bench = new Bench({ cleanupIdleMs: 1e6 })
  bench.register(1)
  bench.submit(Array(10).fill(8))
  bench.cancel(['i1', 'i8', 'i99'])
  expect(bench.settled.sort()).toEqual(['i1:cancelled', 'i8:cancelled'])
  bench.complete(bench.sent[0])
  expect(bench.settled.length).toBe(9)
  expect(bench.core.counts().waiting.items).toBe(1)
})

it('S35: an id of another job is another item', () => {
  const bench = new Bench()
  bench.do({ type: 'createJob', job: 1 })
  bench.submit([item('a')])
  bench.submit([item('a')], 1)
  bench.cancel(['a'], 1)
  expect(bench.core.counts().jobs.map((job) => job.settled.cancelled)).toEqual([0, 1])
})

it('S35: a slot that has another tenant by now is left alone', () => {
  const bench = new Bench()
  bench.register(1)
  bench.submit([{ id: 'a', length: 64 }])
  const found = bench.core.find(0, [new TextEncoder().encode('a')])
  bench.complete(bench.sent[0])
  bench.submit([{ id: 'b', length: 64 }])
  bench.do({ type: 'cancel', slots: found.slots, numbers: found.numbers })
  expect(bench.settled).toEqual(['a:completed'])
})

it('S35: a pass over the table can be made in parts', () => {
  const bench = new Bench()
  bench.submit(Array.from({ length: 40 }, (_, i) => item(`a${i}`)))
  const ids = ['a3', 'a39'].map((id) => new TextEncoder().encode(id))
  const found: number[] = []
  for (let from = 0; from >= 0; ) {
    const part = bench.core.find(0, ids, from, 7)
    for (const slot of part.slots) found.push(slot)
    from = part.next
  }
  expect(found.map((slot) => bench.id(slot))).toEqual(['a3', 'a39'])
  expect(bench.core.find(0, null).slots.length).toBe(40)
})

it('S36: a cancelled item’s id stays known', () => {
  const bench = new Bench()
  bench.submit([item('a')])
  bench.cancel(['a'])
  const codes = (id: string, length = 8) =>
    [...bench.submit([{ id, length }])].flatMap((effect) =>
      effect.type === 'submitted' ? [...effect.codes] : [],
    )
  expect(codes('a')).toEqual([1])
  expect(codes('a', 9)).toEqual([2])
})

it('S10: the age of the oldest held item is looked at anew when that item is cancelled', () => {
  const bench = new Bench({ releaseThreshold: 1000, gateMaxHoldMs: 100 })
  bench.register(1)
  bench.submit([item('a')])
  bench.advance(60)
  bench.submit([item('b')])
  bench.cancel(['a'])
  bench.advance(99)
  expect(bench.of('gate')).toEqual([])
  bench.advance(1)
  expect(bench.of('gate')).toMatchObject([{ reason: 'max_hold' }])
})

it('S35: the waiting items of a paused job are not ready until it is resumed; it takes new ones', () => {
  const bench = new Bench()
  bench.do({ type: 'createJob', job: 1 })
  bench.do({ type: 'pauseJob', job: 1 })
  bench.register(1)
  bench.submit(Array(8).fill(8), 1)
  bench.submit([64])
  expect(bench.sent.map((sent) => sent.ids)).toEqual([['i8']])
  expect(bench.core.counts().queue.held.items).toBe(8)
  bench.do({ type: 'resumeJob', job: 1 })
  expect(bench.sent[1].ids.length).toBe(8)
})

it('S35: a pause does not end with unread results, nor they with it', () => {
  const bench = new Bench({ maxUnreadResultBytes: 100 })
  bench.register(1)
  bench.do({ type: 'pauseJob', job: 0 })
  bench.do({ type: 'resultsStored', job: 0, bytes: 200 })
  bench.do({ type: 'resumeJob', job: 0 })
  expect(bench.core.counts().jobs[0]).toMatchObject({ onHold: true, paused: false })
  bench.do({ type: 'pauseJob', job: 0 })
  bench.do({ type: 'resultsRead', job: 0, bytes: 200 })
  expect(bench.core.counts().jobs[0]).toMatchObject({ onHold: true, paused: true })
  bench.do({ type: 'resumeJob', job: 0 })
  expect(bench.core.counts().jobs[0]).toMatchObject({ onHold: false, paused: false })
})

it('explain: says what an item waits for', () => {
  const bench = new Bench({ cleanupIdleMs: 1e6, releaseThreshold: 64 })
  bench.submit([...Array(3).fill(8), { id: 'late', length: 16, deadlineMs: 500 }])
  const why = (id: string) => bench.core.explain(bench.slotOf(id)).why
  expect(why('i0')).toMatchObject({
    state: 'queued',
    tier: 'staging',
    consumers: 0,
    neededItems: null,
  })
  bench.register(1)
  expect(why('i0')).toMatchObject({
    shapeItems: 3,
    neededItems: 8,
    gate: { open: false, progress: 0.625 },
  })
  expect(bench.core.explain(bench.slotOf('late')).deadlineAt).toBe(500 * MS)
  bench.submit(Array(5).fill(8))
  expect(why('i0')).toEqual({
    state: 'leased',
    consumer: 'gpu1',
    batch: 1,
    batchItems: 8,
    takenAt: null,
  })
  bench.advance(10)
  bench.taken(bench.sent[0])
  expect(why('i0')).toMatchObject({ takenAt: 10 * MS })
  bench.results(bench.sent[0], [RESULT_RETRY, 0, 0])
  expect(why('i0')).toEqual({ state: 'retrying', dueAt: 110 * MS })
  bench.die(bench.sent[0])
  expect(why('i3')).toMatchObject({ state: 'grouped', kind: 'suspect', items: 5, consumers: 0 })
  bench.do({ type: 'pauseJob', job: 0 })
  expect(why('i3')).toEqual({ state: 'held', reason: 'paused' })
  expect(why('late')).toEqual({ state: 'held', reason: 'paused' })
})

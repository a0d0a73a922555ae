// The disk tier (storage modes, S8, S12, S34, S36): admission in two steps, counts instead of rows,
// items read when their batch is due.

import { expect, it } from 'vitest'
import { RESULT_COMPLETED, RESULT_NACK } from '../src/events.js'
import { DiskBench } from './disk-bench.js'

const eights = (count: number) => Array(count).fill(8)

it('S8: the gate is open from the first step, with no consumer and nothing waiting', () => {
  const bench = new DiskBench({ releaseThreshold: 1_000_000 })
  bench.do({ type: 'tick' })
  expect(bench.of('gate')).toEqual([{ type: 'gate', reason: 'disk', heldNs: 0 }])
})

it('S34: admitted items hold their room until the disk has answered, and give it back if it fails', () => {
  const bench = new DiskBench({ maxQueuedItems: 3 })
  const first = bench.admit([8, 8])
  expect(bench.core.counts()).toMatchObject({ accepted: 0, reserved: { items: 2, tokens: 16 } })
  const second = bench.admit([8, 8])
  expect([...second.sequences]).toEqual([3, 0])
  bench.stored({ ...first, codes: Uint8Array.of(4, 4) })
  bench.stored(second)
  const { accepted, reserved, waiting, queue } = bench.core.counts()
  expect({ accepted, reserved, waiting }).toEqual({
    accepted: 1,
    reserved: { items: 0, tokens: 0 },
    waiting: { items: 1, tokens: 8 },
  })
  expect(queue.disk).toEqual({ items: 1, tokens: 8 })
})

it('S34: an item that the core refuses gets no number and holds no room', () => {
  const bench = new DiskBench({ maxItemBytes: 64 })
  const { sequences } = bench.admit([8, 100, 8])
  expect([...sequences]).toEqual([1, 0, 2])
  expect(bench.core.counts().reserved.items).toBe(2)
})

it('S36: what the store calls a duplicate is not accepted and does not reopen its job', () => {
  const bench = new DiskBench()
  bench.keep([{ id: 'a', length: 8 }])
  bench.do({ type: 'flush', job: 0 })
  bench.keep([{ id: 'a', length: 8 }])
  expect(bench.core.counts()).toMatchObject({ accepted: 1 })
  expect(bench.core.counts().jobs[0].flushed).toBe(true)
  expect(bench.of('reopened')).toEqual([])
  bench.keep([{ id: 'b', length: 8 }])
  expect(bench.of('reopened')).toEqual([{ type: 'reopened', job: 0 }])
})

it('S10: an end of input covers what was admitted before it, and the job ends after that', () => {
  const bench = new DiskBench()
  bench.register(1)
  const admitted = bench.admit([8])
  bench.do({ type: 'flush', job: 0 })
  expect(bench.of('jobEnded')).toEqual([])
  bench.stored(admitted)
  expect(bench.of('reopened')).toEqual([])
  bench.completeAll()
  expect(bench.of('jobEnded')).toHaveLength(1)
})

it('S12: reclaimed work goes before the disk tier, and that before the lanes', () => {
  const bench = new DiskBench({ channelDepth: 1 })
  bench.submit(eights(8))
  bench.keep(eights(16))
  bench.register(1)
  bench.do({ type: 'disconnect', consumer: 1, cause: 'connection_closed' })
  bench.register(2)
  bench.completeAll()
  expect(bench.sent.map(({ effect }) => effect.source)).toEqual([
    'disk',
    'reclaimed',
    'disk',
    'lane',
  ])
})

it('S13: shapes on disk have their turns in the round, whatever the window holds', () => {
  const bench = new DiskBench({ channelDepth: 1, readAheadTokens: 0 })
  bench.keep([...eights(24), ...Array(8).fill(16), ...Array(2).fill(32)])
  bench.register(1)
  bench.completeAll()
  expect(bench.sent.map(({ effect }) => effect.paddedLength)).toEqual([8, 16, 32, 8, 16, 8])
})

it('I5: a dispatch that lacks items asks for them and decides nothing; others are served meanwhile', () => {
  const bench = new DiskBench()
  bench.slow = true
  bench.keep(eights(8))
  bench.submit([{ id: 'm', length: 64, model: 2 }])
  bench.register(1)
  expect(bench.sent).toEqual([])
  expect(bench.of('load')).toMatchObject([{ job: 0, model: 1, paddedLength: 8, tokens: 64 }])
  bench.register(2, { model: 2 })
  expect(bench.sentIds()).toEqual([['m']])
  bench.do({ type: 'tick' })
  expect(bench.of('load')).toHaveLength(1)
  bench.answerLoads()
  bench.dispatch()
  expect(bench.sent[1].ids).toHaveLength(8)
})

it('the window is bounded: with no read-ahead only what the next batch needs is in memory', () => {
  const bench = new DiskBench({ channelDepth: 1, readAheadTokens: 0 })
  bench.keep(eights(800))
  bench.register(1)
  expect(bench.core.counts().window.items).toBe(0)
  const ahead = new DiskBench({ channelDepth: 1, readAheadTokens: 100 })
  ahead.keep(eights(800))
  ahead.register(1)
  const { tokens } = ahead.core.counts().window
  expect(tokens).toBeGreaterThan(0)
  expect(tokens).toBeLessThan(100 + 8)
})

it('S19: a payload counts for the window by its bytes', () => {
  const bench = new DiskBench({ maxBatchBytes: 4096, channelDepth: 1 })
  bench.keep(eights(8))
  bench.register(1)
  expect(bench.of('load').every(({ maxBytes }) => maxBytes <= 4096)).toBe(true)
})

it('S20a: jobs take turns in being read', () => {
  const bench = new DiskBench({ channelDepth: 1, readAheadTokens: 0 })
  bench.createJob(1)
  bench.keep(eights(80), 0)
  bench.keep(
    Array.from({ length: 8 }, (_, i) => ({ id: `late${i}`, length: 8 })),
    1,
  )
  bench.register(1)
  bench.complete(bench.sent[0])
  expect(bench.sent[1].ids[0]).toBe('late0')
})

it('S31: in cleanup all that is left is read and merged', () => {
  const bench = new DiskBench()
  bench.keep([8, 16, 24])
  bench.register(1, { tokens: 128 })
  bench.do({ type: 'flush', job: 0 })
  expect(bench.sent).toHaveLength(1)
  expect(bench.sent[0].effect).toMatchObject({ cleanup: true, source: 'disk', size: 3 })
  expect(bench.of('cleanup').map(({ state }) => state)).toEqual(['begin', 'end'])
})

it('S5: an item on disk over every budget goes alone', () => {
  const bench = new DiskBench()
  bench.keep([200])
  bench.register(1)
  expect(bench.sent[0].effect).toMatchObject({ closedBy: 'alone', source: 'disk' })
})

it('S28: a nacked item of the disk tier comes back to its window: it needs no lane', () => {
  const bench = new DiskBench({ cleanupIdleMs: 1_000_000 })
  bench.keep(eights(15))
  bench.register(1)
  bench.taken(bench.sent[0])
  bench.results(bench.sent[0], [RESULT_NACK, ...Array(7).fill(RESULT_COMPLETED)])
  bench.advance(30_000)
  expect(bench.sent[1].ids).toHaveLength(8)
  expect(bench.sent[1].ids).toContain('i0')
})

it('S34: a job on hold is not read; released, it goes on', () => {
  const bench = new DiskBench({ maxUnreadResultBytes: 1000 })
  bench.keep(eights(16))
  bench.do({ type: 'resultsStored', job: 0, bytes: 1001 })
  bench.register(1)
  expect(bench.of('load')).toEqual([])
  expect(bench.core.counts().queue).toMatchObject({ held: { items: 16 }, disk: { items: 0 } })
  bench.do({ type: 'resultsRead', job: 0, bytes: 1001 })
  expect(bench.sent).toHaveLength(2)
})

it('S34: what comes from the disk for a job that went on hold meanwhile is held', () => {
  const bench = new DiskBench({ maxUnreadResultBytes: 1000 })
  bench.slow = true
  bench.keep(eights(8))
  bench.register(1)
  bench.do({ type: 'resultsStored', job: 0, bytes: 1001 })
  bench.answerLoads()
  bench.dispatch()
  expect(bench.sent).toEqual([])
  bench.do({ type: 'resultsRead', job: 0, bytes: 1001 })
  expect(bench.sent).toHaveLength(1)
})

it('S36: a deleted job takes its items on disk with it, and what is being read of them', () => {
  const bench = new DiskBench()
  bench.slow = true
  bench.createJob(1)
  bench.keep(eights(24), 1)
  bench.register(1)
  bench.do({ type: 'deleteJob', job: 1 })
  bench.answerLoads()
  bench.dispatch()
  const { waiting, settled, queue, window } = bench.core.counts()
  expect({ waiting: waiting.items, cancelled: settled.cancelled }).toEqual({
    waiting: 0,
    cancelled: 24,
  })
  expect([queue.disk.items, window.items]).toEqual([0, 0])
  expect(bench.sent).toEqual([])
})

it('I1: items that are read back before their storing was told are accepted once', () => {
  const bench = new DiskBench()
  bench.slow = true
  bench.keep(eights(8))
  const early = bench.admit(eights(8))
  bench.register(1)
  bench.do({
    type: 'loaded',
    job: 0,
    model: 1,
    paddedLength: 8,
    items: bench.store.load(0, 1, 8, 128),
  })
  expect(bench.core.counts()).toMatchObject({ accepted: 16, reserved: { items: 0 } })
  expect(bench.sent).toHaveLength(2)
  bench.stored(early)
  expect(bench.core.counts()).toMatchObject({ accepted: 16, waiting: { items: 0 }, leased: 16 })
})

it('a restart knows counts, ends of input and jobs, and gives no number twice', () => {
  const first = new DiskBench()
  first.createJob(7)
  first.keep(eights(20), 7)
  const bench = new DiskBench()
  const [, job] = first.store.restored()
  bench.do({
    type: 'restore',
    lastSequence: 20,
    jobs: [{ ...job, flushed: true, settled: { completed: 5 } }],
  })
  expect(bench.core.counts()).toMatchObject({ accepted: 25, waiting: { items: 20 } })
  expect(bench.core.counts().jobs[1]).toMatchObject({ job: 7, flushed: true, accepted: 25 })
  expect([...bench.admit([8]).sequences]).toEqual([21])
})

it('a restart tells the end of a job whose last result was kept and whose end was not', () => {
  const bench = new DiskBench()
  const job = {
    weight: 1,
    flushed: true,
    settled: { completed: 5 },
    unreadResultBytes: 0,
    shapes: [],
  }
  const ended = { ...job, job: 1, ended: true }
  bench.do({ type: 'restore', lastSequence: 5, jobs: [ended, { ...job, job: 2, ended: false }] })
  expect(bench.of('jobEnded')).toEqual([{ type: 'jobEnded', job: 2 }])
})

it('I1: items that cannot be read back count as failed, and the job can end', () => {
  const bench = new DiskBench()
  bench.slow = true
  bench.keep(eights(24))
  bench.do({ type: 'flush', job: 0 })
  bench.do({ type: 'lost', job: 0, model: 1, paddedLength: 8, items: 8, tokens: 64 })
  expect(bench.core.counts()).toMatchObject({ waiting: { items: 16, tokens: 128 } })
  bench.register(1)
  bench.do({ type: 'loaded', job: 0, model: 1, paddedLength: 8, items: null })
  expect(bench.core.counts()).toMatchObject({ waiting: { items: 0 }, settled: { failed: 24 } })
  expect(bench.of('jobEnded')).toHaveLength(1)
})

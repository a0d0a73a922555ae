// S23 to S26 and the base of S28: results, deaths, reclaim, late results, retries.

import { expect, it } from 'vitest'
import { RESULT_COMPLETED, RESULT_FAILED, RESULT_NACK, RESULT_RETRY } from '../src/events.js'
import { Bench, MS } from './helpers.js'

const closed = { type: 'disconnect', consumer: 1, cause: 'connection_closed' } as const

/** A bench whose consumer 1 holds one batch of eight, i0 to i7. */
function withBatch(over = {}): Bench {
  const bench = new Bench({ cleanupIdleMs: 1e6, ...over })
  bench.register(1)
  bench.submit(Array(8).fill(8))
  return bench
}

it('S23: a consumer settles item by item, and one bad item never fails its neighbours', () => {
  const bench = withBatch()
  const [sent] = bench.sent
  bench.taken(sent)
  bench.results(sent, [RESULT_COMPLETED, RESULT_FAILED, RESULT_COMPLETED])
  expect(bench.settled).toEqual(['i0:completed', 'i1:failed', 'i2:completed'])
  expect(bench.of('batchDone')).toEqual([])
  bench.results(sent, Array(5).fill(0), { index: Uint32Array.of(3, 4, 5, 6, 7) } as never)
  expect(bench.of('batchDone')).toEqual([{ type: 'batchDone', consumer: 1, batch: 1 }])
  expect(bench.settled.length).toBe(8)
})

it('S23: a settle effect names each item’s place in its batch', () => {
  const bench = withBatch()
  bench.taken(bench.sent[0])
  bench.results(bench.sent[0], [0, 0], { index: Uint32Array.of(6, 2) } as never)
  expect([...bench.of('settle')[0].index]).toEqual([6, 2])
  expect(bench.settled).toEqual(['i6:completed', 'i2:completed'])
})

it('S23: doubled results and places outside the batch are dropped and counted', () => {
  const bench = withBatch()
  bench.taken(bench.sent[0])
  bench.results(bench.sent[0], [0, 0, 0], { index: Uint32Array.of(1, 1, 99) } as never)
  expect(bench.settled).toEqual(['i1:completed'])
  expect(bench.of('late')).toMatchObject([{ items: 2, unknownLease: false }])
})

it('S24: a consumer that stops renewing is dead after leaseTimeout, and told to close', () => {
  const bench = withBatch({ leaseTimeoutMs: 300 })
  bench.advance(200)
  bench.do({ type: 'renew', consumer: 1 })
  bench.advance(299)
  expect(bench.of('dead')).toEqual([])
  bench.advance(1)
  expect(bench.of('dead')).toEqual([{ type: 'dead', consumer: 1, cause: 'lease_timeout' }])
  expect(bench.of('close')).toEqual([{ type: 'close', consumer: 1, cause: 'lease_timeout' }])
  expect(bench.of('reclaim')).toMatchObject([{ consumer: 1, batches: [1], items: 8 }])
  expect([...bench.of('reclaim')[0].slots]).toEqual([...bench.sent[0].effect.items])
})

it('S24: a batch taken longer than leaseMax ago goes back though the connection lives', () => {
  const bench = withBatch({ leaseMaxMs: 1000, leaseTimeoutMs: 1e9 })
  bench.advance(500)
  bench.taken(bench.sent[0])
  bench.advance(999)
  expect(bench.of('reclaim')).toEqual([])
  bench.advance(1)
  expect(bench.of('reclaim')).toMatchObject([{ batches: [1], items: 8 }])
  expect(bench.of('dead')).toEqual([])
  expect(bench.sent.length).toBe(2)
})

it('S24: a consumer that could take a batch and does not for leaseMax is dead, though it renews', () => {
  const bench = withBatch({ leaseMaxMs: 1000, leaseTimeoutMs: 300 })
  const renewing = (ms: number) => {
    for (let left = ms; left > 0; left -= 100) {
      bench.advance(Math.min(100, left))
      bench.do({ type: 'renew', consumer: 1 })
    }
  }
  renewing(999)
  expect(bench.of('dead')).toEqual([])
  bench.advance(1)
  expect(bench.of('dead')).toEqual([{ type: 'dead', consumer: 1, cause: 'lease_max' }])
  expect(bench.of('close')).toEqual([{ type: 'close', consumer: 1, cause: 'lease_max' }])
  expect(bench.of('reclaim')).toMatchObject([{ consumer: 1, batches: [1], items: 8 }])
})

it('S24: a channel behind a batch in flight waits as long as that takes', () => {
  const bench = withBatch({ leaseMaxMs: 1000, leaseTimeoutMs: 1e9 })
  bench.submit(Array(8).fill(8))
  bench.advance(900)
  bench.taken(bench.sent[0])
  bench.advance(900)
  bench.results(bench.sent[0], Array(8).fill(RESULT_COMPLETED))
  bench.advance(999)
  expect(bench.of('dead')).toEqual([])
  bench.advance(1)
  expect(bench.of('dead')).toMatchObject([{ cause: 'lease_max' }])
})

it('S24: each batch that is taken gives a consumer time anew for the next', () => {
  const bench = new Bench({ cleanupIdleMs: 1e6, leaseMaxMs: 1000, leaseTimeoutMs: 1e9 })
  bench.register(1, { maxInFlight: 3 })
  bench.submit(Array(24).fill(8))
  for (let i = 0; i < 2; i++) {
    bench.advance(900)
    bench.taken(bench.sent[i])
    bench.results(bench.sent[i], Array(8).fill(RESULT_COMPLETED))
  }
  bench.advance(999)
  expect(bench.of('dead')).toEqual([])
  bench.advance(1)
  expect(bench.of('reclaim')).toMatchObject([{ batches: [3], items: 8 }])
})

it('S24: a draining consumer has nothing left to take, and may finish what it works on', () => {
  const bench = new Bench({ cleanupIdleMs: 1e6, leaseMaxMs: 1000, leaseTimeoutMs: 1e9 })
  bench.register(1, { maxInFlight: 2 })
  bench.submit(Array(16).fill(8))
  bench.taken(bench.sent[0])
  bench.do({ type: 'drain', consumer: 1 })
  bench.advance(1000)
  expect(bench.of('dead')).toEqual([])
})

it('S25: all unsettled items of a dead consumer come back, its channel included', () => {
  const bench = withBatch()
  bench.submit(Array(8).fill(8))
  bench.taken(bench.sent[0])
  bench.results(bench.sent[0], [0, 0, 0])
  bench.do(closed)
  expect(bench.of('reclaim')).toMatchObject([
    { type: 'reclaim', consumer: 1, batches: [1, 2], items: 13 },
  ])
  bench.register(2)
  bench.completeAll()
  expect(new Set(bench.settled).size).toBe(16)
})

it('S25: a delivery counts when the batch was taken, and for the head of a closed channel', () => {
  const bench = new Bench({ channelDepth: 3 })
  bench.register(1)
  bench.submit(Array(24).fill(8))
  bench.taken(bench.sent[0])
  bench.do(closed)
  for (const consumer of [2, 3, 4]) bench.register(consumer)
  expect(bench.sent.slice(3).map((sent) => sent.effect.attempt)).toEqual([2, 2, 1])
})

it('S25: draining gives the channel back without counting a delivery', () => {
  const bench = new Bench()
  bench.register(1)
  bench.submit(Array(16).fill(8))
  bench.taken(bench.sent[0])
  bench.do({ type: 'drain', consumer: 1 })
  bench.register(2)
  expect(bench.sent.slice(2).map((sent) => [sent.consumer, sent.effect.attempt])).toEqual([[2, 1]])
  bench.results(bench.sent[0], Array(8).fill(0))
  expect(bench.settled.length).toBe(8)
  bench.submit(Array(80).fill(8))
  expect(bench.sent.slice(2).every((sent) => sent.consumer === 2)).toBe(true)
})

it('S26: a late result settles its item while it waits; the queued copy is withdrawn', () => {
  const bench = withBatch()
  bench.taken(bench.sent[0])
  bench.do(closed)
  bench.results(bench.sent[0], [0, 0])
  expect(bench.settled).toEqual(['i0:completed', 'i1:completed'])
  bench.register(2)
  expect(bench.sent[1].ids).toEqual(['i2', 'i3', 'i4', 'i5', 'i6', 'i7'])
})

it('S26: a late result settles its item in another consumer’s batch, whose result is dropped', () => {
  const bench = withBatch()
  bench.taken(bench.sent[0])
  bench.do(closed)
  bench.register(2)
  bench.results(bench.sent[0], [RESULT_FAILED])
  expect(bench.settled).toEqual(['i0:failed'])
  bench.complete(bench.sent[1])
  expect(bench.settled.length).toBe(8)
  expect(bench.settled.filter((end) => end.startsWith('i0'))).toEqual(['i0:failed'])
  expect(bench.of('late')).toMatchObject([
    {
      consumer: 2,
      items: 1,
      index: Uint32Array.of(bench.sent[1].ids.indexOf('i0')),
      unknownLease: false,
    },
  ])
  expect(bench.of('batchDone').length).toBe(1)
})

it('S26: a late result of an item that has ended is dropped and counted', () => {
  const bench = withBatch()
  bench.taken(bench.sent[0])
  bench.do(closed)
  bench.register(2)
  bench.complete(bench.sent[1])
  bench.results(bench.sent[0], Array(8).fill(0))
  expect(bench.settled.length).toBe(8)
  expect(bench.of('late')).toMatchObject([{ consumer: 1, items: 8, unknownLease: false }])
})

it('S26: a late result never settles another item that has the slot now', () => {
  const bench = withBatch()
  bench.taken(bench.sent[0])
  bench.do(closed)
  bench.register(2)
  bench.complete(bench.sent[1])
  bench.submit(Array(8).fill(8))
  expect(new Set(bench.sent[2].effect.items)).toEqual(new Set(bench.sent[0].effect.items.keys()))
  bench.results(bench.sent[0], Array(8).fill(RESULT_FAILED))
  expect(bench.settled.filter((end) => end.endsWith('failed'))).toEqual([])
})

it('S26: a late wish to retry is dropped: the item was taken back already', () => {
  const bench = withBatch()
  bench.taken(bench.sent[0])
  bench.do(closed)
  bench.results(bench.sent[0], [RESULT_RETRY, RESULT_NACK])
  expect(bench.core.counts().queue.reclaimed.items).toBe(8)
  expect(bench.of('late')).toMatchObject([{ items: 2 }])
})

it('S26: a lease of another life of the broker is unknown', () => {
  const bench = withBatch()
  bench.taken(bench.sent[0])
  bench.results(bench.sent[0], [0, 0], { brokerLife: 5n } as never)
  expect(bench.settled).toEqual([])
  expect(bench.of('late')).toMatchObject([{ items: 2, unknownLease: true }])
})

it('S26: the item lists of batches taken back are forgotten after a bounded time', () => {
  const bench = withBatch({ leaseMaxMs: 1000 })
  bench.taken(bench.sent[0])
  bench.do(closed)
  bench.advance(1000)
  bench.results(bench.sent[0], [0])
  expect(bench.of('late')).toMatchObject([{ items: 1, unknownLease: true }])
})

it('S28: an item failed with retry comes back after retryDelay, doubling up to 30 s', () => {
  const bench = withBatch({ maxAttempts: 20, leaseTimeoutMs: 1e9 })
  const delays: number[] = []
  bench.complete(bench.sent[0])
  bench.submit([64])
  for (let i = 0; i < 11; i++) {
    const sent = bench.sent.at(-1)!
    bench.taken(sent)
    bench.results(sent, [RESULT_RETRY])
    const asked = bench.now
    const { length } = bench.sent
    while (bench.sent.length === length) bench.advance(50)
    delays.push((bench.now - asked) / MS)
  }
  expect(delays).toEqual([100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000])
})

it('S28: it comes back as lane work, behind what waits', () => {
  const bench = withBatch()
  bench.submit(Array(6).fill(8))
  bench.taken(bench.sent[0])
  bench.results(bench.sent[0], [RESULT_RETRY, RESULT_NACK, 0, 0, 0, 0, 0, 0])
  expect(bench.core.counts().queue.retrying.items).toBe(2)
  bench.advance(100)
  const { ids, effect } = bench.sent[1]
  expect(ids).toEqual(['i8', 'i9', 'i10', 'i11', 'i12', 'i13', 'i0', 'i1'])
  expect(effect.source).toBe('lane')
  expect(effect.normal).toBe(true)
  expect(effect.attempt).toBe(2)
})

it('S28: maxAttempts failures end an item as failed, with the reason', () => {
  const bench = new Bench({ maxAttempts: 2 })
  bench.register(1)
  bench.submit([64])
  for (let i = 0; i < 2; i++) {
    bench.taken(bench.sent[i])
    bench.results(bench.sent[i], [RESULT_RETRY])
    bench.advance(100)
  }
  expect(bench.settled).toEqual(['i0:failed'])
  expect(bench.of('settle')[0].reason).toBe('max_attempts')
})

it('S28: a nack counts no failure, and maxDeliveries ends it', () => {
  const bench = new Bench({ maxAttempts: 2, maxDeliveries: 4 })
  bench.register(1)
  bench.submit([64])
  for (let i = 0; i < 4; i++) {
    bench.taken(bench.sent[i])
    bench.results(bench.sent[i], [RESULT_NACK])
    bench.advance(10_000)
    bench.do({ type: 'renew', consumer: 1 })
  }
  expect(bench.settled).toEqual(['i0:failed'])
  expect(bench.of('settle')[0].reason).toBe('max_deliveries')
})

it('S28: maxDeliveries ends an item whose consumers die, too', () => {
  const bench = new Bench({ maxDeliveries: 2 })
  bench.register(1)
  bench.submit([64])
  bench.taken(bench.sent[0])
  bench.results(bench.sent[0], [RESULT_NACK])
  bench.advance(100)
  bench.die(bench.sent[1])
  expect(bench.settled).toEqual(['i0:failed'])
})

it('I6: a consumer that takes more than maxInFlight is dead, and its work comes back', () => {
  const bench = new Bench()
  bench.register(1)
  bench.submit(Array(16).fill(8))
  bench.taken(bench.sent[0])
  bench.taken(bench.sent[1])
  expect(bench.of('dead')).toEqual([{ type: 'dead', consumer: 1, cause: 'protocol_error' }])
  expect(bench.of('reclaim')[0].items).toBe(16)
})

it('core: news of a consumer that is gone are ignored', () => {
  const bench = withBatch()
  bench.do(closed)
  bench.do({ type: 'renew', consumer: 1 })
  bench.do({ type: 'taken', consumer: 1, batch: 1 })
  bench.do({ type: 'drain', consumer: 1 })
  bench.do({ type: 'room', consumer: 1, hasRoom: true })
  bench.do(closed)
  expect(bench.of('dead').length).toBe(1)
})

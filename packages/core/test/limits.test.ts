// S34 and S36: limits of the queue, unread results, ids.

import { expect, it } from 'vitest'
import { Bench, block } from './helpers.js'

const [OK, DUPLICATE, CONFLICT, TOO_LARGE, FULL, UNREAD] = [0, 1, 2, 3, 4, 5]
const codes = (bench: Bench) => bench.of('submitted').map((effect) => [...effect.codes])
const item = (id: string, length = 8, token = 0) => ({ id, length, token })

it('S34: a list is accepted as its longest prefix that fits, by items', () => {
  const bench = new Bench({ maxQueuedItems: 2, releaseThreshold: 1e9 })
  bench.submit([8, 8, 8, 8])
  expect(codes(bench)).toEqual([[OK, OK, FULL, FULL]])
  expect(bench.of('submitted')[0].accepted).toBe(2)
})

it('S34: by tokens: a shorter item behind the first refused one is refused too', () => {
  const bench = new Bench({ maxQueuedTokens: 20, releaseThreshold: 1e9 })
  bench.submit([10, 11, 1])
  expect(codes(bench)).toEqual([[OK, FULL, FULL]])
  bench.submit([10])
  expect(codes(bench)[1]).toEqual([OK])
})

it('S34: the same rule for one item as for a list', () => {
  const bench = new Bench({ maxQueuedItems: 1, releaseThreshold: 1e9 })
  bench.submit([8])
  bench.submit([8])
  expect(codes(bench)).toEqual([[OK], [FULL]])
})

it('S34: a duplicate needs no room', () => {
  const bench = new Bench({ maxQueuedItems: 2, releaseThreshold: 1e9 })
  bench.submit([item('a'), item('b')])
  bench.submit([item('a'), item('b'), item('c')])
  expect(codes(bench)[1]).toEqual([DUPLICATE, DUPLICATE, FULL])
})

it('S34: what leaves the queue makes room', () => {
  const bench = new Bench({ maxQueuedItems: 8 })
  bench.submit(Array(8).fill(8))
  bench.register(1)
  bench.do({ type: 'flush', job: null })
  bench.submit([8])
  expect(codes(bench)[1]).toEqual([OK])
})

it('S34: items over maxItemBytes are too large, and the others of the list go on', () => {
  const bench = new Bench({ maxItemBytes: 45 })
  bench.submit([item('a', 12), item('b', 11), { id: 'c', length: 1, payload: new Uint8Array(45) }])
  expect(codes(bench)).toEqual([[TOO_LARGE, OK, TOO_LARGE]])
})

it('S34: an item that no queue or batch could ever hold is too large, not asked to come back', () => {
  const bench = new Bench({ maxQueuedTokens: 100, maxBatchBytes: 1000 })
  bench.submit([item('a', 101), item('b', 100), { ...item('c'), payload: new Uint8Array(990) }])
  expect(codes(bench)).toEqual([[TOO_LARGE, OK, TOO_LARGE]])
})

it('S34: when to come back follows the drain rate, from 50 ms to 5 s', () => {
  const bench = new Bench({ maxQueuedItems: 16 })
  bench.submit(Array(20).fill(8))
  expect(bench.of('submitted')[0].retryAfterMs).toBe(1000)
  bench.register(1, { batchSize: 1, tokens: 8 })
  for (let i = 0; i < 10; i++) {
    bench.advance(100)
    bench.complete(bench.sent[i])
  }
  bench.submit(Array(20).fill(8))
  const [, second] = bench.of('submitted')
  // Some 10 items a second leave; an eighth of the queue is two.
  expect(second.retryAfterMs).toBeGreaterThan(100)
  expect(second.retryAfterMs).toBeLessThan(400)
  bench.submit([8])
  expect(bench.of('submitted')[2].retryAfterMs).toBeGreaterThanOrEqual(50)
  expect(bench.of('submitted')[2].retryAfterMs).toBeLessThan(second.retryAfterMs)
})

it('S34: a long list is asked back for an eighth of the queue, not when the queue is empty', () => {
  const bench = new Bench({ maxQueuedItems: 64, gateMaxHoldMs: 0 })
  bench.submit(Array(64).fill(8))
  bench.register(1, { batchSize: 1, tokens: 8 })
  for (let i = 0; i < 20; i++) {
    bench.advance(100)
    bench.complete(bench.sent[i])
  }
  // 10 items a second leave. All 1,000 would take 100 s, the whole queue 6 s, 8 items 0.8 s.
  bench.submit(Array(1000).fill(8))
  const { retryAfterMs } = bench.of('submitted')[1]
  expect(retryAfterMs).toBeGreaterThan(400)
  expect(retryAfterMs).toBeLessThan(1600)
})

it('S34: when to come back is never over 5 s, nor under 50 ms', () => {
  const slow = new Bench({ maxQueuedItems: 500 })
  slow.submit(Array(500).fill(64))
  slow.register(1)
  slow.submit(Array(500).fill(64))
  expect(slow.of('submitted')[1].retryAfterMs).toBe(5000)
  const fast = new Bench({ maxQueuedItems: 64 })
  fast.register(1)
  for (let i = 0; i < 100; i++) {
    fast.submit(Array(8).fill(8))
    fast.complete(fast.sent[i])
  }
  fast.submit(Array(66).fill(64))
  expect(fast.of('submitted').at(-1)!.retryAfterMs).toBe(50)
})

it('S34: an accepted block is not told to come back', () => {
  const bench = new Bench()
  bench.submit([8])
  expect(bench.of('submitted')[0].retryAfterMs).toBe(0)
})

it('S34: a job whose results are not read takes no new items, duplicates aside', () => {
  const bench = new Bench({ maxUnreadResultBytes: 100 })
  bench.submit([item('a')])
  bench.do({ type: 'resultsStored', job: 0, bytes: 101 })
  bench.submit([item('a'), item('b')])
  expect(codes(bench)[1]).toEqual([DUPLICATE, UNREAD])
  bench.do({ type: 'resultsRead', job: 0, bytes: 51 })
  bench.submit([item('b')])
  expect(codes(bench)[2]).toEqual([OK])
})

it('S34: and its waiting items are not ready until results are read; other jobs go on', () => {
  const bench = new Bench({ maxUnreadResultBytes: 100 })
  bench.do({ type: 'createJob', job: 1 })
  bench.submit(Array(7).fill(8), 1)
  bench.do({ type: 'resultsStored', job: 1, bytes: 101 })
  expect(bench.core.counts().queue.held.items).toBe(7)
  bench.register(1)
  bench.submit(Array(8).fill(8), 0)
  bench.do({ type: 'flush', job: null })
  expect(bench.sent.map((sent) => sent.ids[0])).toEqual(['i7'])
  expect(bench.sent.length).toBe(1)
  bench.do({ type: 'resultsRead', job: 1, bytes: 60 })
  bench.completeAll()
  expect(bench.settled.length).toBe(15)
})

it('S34: reclaimed and retried items of such a job wait, and come back as what they were', () => {
  const bench = new Bench({ maxUnreadResultBytes: 100 })
  bench.register(1)
  bench.submit(Array(8).fill(8))
  bench.do({ type: 'resultsStored', job: 0, bytes: 101 })
  bench.do({ type: 'disconnect', consumer: 1, cause: 'connection_closed' })
  bench.register(2)
  expect(bench.sent.length).toBe(1)
  bench.do({ type: 'resultsRead', job: 0, bytes: 101 })
  expect(bench.sent[1].effect.source).toBe('reclaimed')
  expect(bench.sent[1].ids.length).toBe(8)
})

it('S36: an id is known within its job: same body, another body, another job', () => {
  const bench = new Bench()
  bench.do({ type: 'createJob', job: 1 })
  bench.submit([item('a', 8, 1)])
  bench.submit([
    item('a', 8, 1),
    item('a', 8, 2),
    item('a', 7, 1),
    { ...item('a', 8, 1), model: 2 },
  ])
  bench.submit([item('a', 8, 2)], 1)
  expect(codes(bench)).toEqual([[OK], [DUPLICATE, CONFLICT, CONFLICT, CONFLICT], [OK]])
})

it('S36: the same holds within one list, and for payloads', () => {
  const bench = new Bench()
  const payload = (byte: number) => ({ id: 'p', length: 8, payload: Uint8Array.of(byte) })
  bench.submit([payload(1), payload(1), payload(2), item('p')])
  expect(codes(bench)).toEqual([[OK, DUPLICATE, CONFLICT, CONFLICT]])
})

it('S36: an id is known after its item has ended', () => {
  const bench = new Bench()
  bench.register(1)
  bench.submit([item('a')])
  bench.do({ type: 'flush', job: null })
  bench.completeAll()
  bench.submit([item('a'), item('a', 9)])
  expect(codes(bench)[1]).toEqual([DUPLICATE, CONFLICT])
})

it('S36: until the job is deleted', () => {
  const bench = new Bench()
  bench.do({ type: 'createJob', job: 1 })
  bench.submit([item('a')], 1)
  bench.do({ type: 'deleteJob', job: 1 })
  bench.do({ type: 'createJob', job: 1 })
  bench.submit([item('a', 9)], 1)
  expect(codes(bench)[1]).toEqual([OK])
})

it('S36: or until resultsTtl has passed since its item ended, and not before', () => {
  const bench = new Bench({ resultsTtlMs: 1000, leaseTimeoutMs: 1e9 })
  bench.submit([item('a')])
  bench.advance(10_500)
  bench.submit([item('a')])
  expect(codes(bench)[1]).toEqual([DUPLICATE])
  bench.register(1)
  bench.do({ type: 'flush', job: null })
  bench.completeAll()
  bench.advance(999)
  bench.submit([item('a')])
  expect(codes(bench)[2]).toEqual([DUPLICATE])
  bench.advance(1500)
  bench.submit([item('a')])
  expect(codes(bench)[3]).toEqual([OK])
})

it('S36: deleting a job cancels what has not ended, waiting and leased, once', () => {
  const bench = new Bench()
  bench.do({ type: 'createJob', job: 1 })
  bench.register(1)
  bench.submit([...Array(8).fill(8), 16], 1)
  bench.submit([16], 0)
  bench.taken(bench.sent[0])
  bench.results(bench.sent[0], [0])
  bench.do({ type: 'deleteJob', job: 1 })
  expect(bench.settled.filter((end) => end.endsWith(':cancelled')).length).toBe(8)
  expect(
    bench
      .of('settle')
      .slice(1)
      .map((effect) => [effect.batch, effect.items.length]),
  ).toEqual([
    [null, 1],
    [1, 7],
  ])
  bench.results(bench.sent[0], Array(8).fill(0))
  expect(bench.of('batchDone').length).toBe(1)
  expect(bench.settled.length).toBe(9)
  expect(bench.core.counts().waiting.items).toBe(1)
})

it('S36: the default job can be emptied, and stays', () => {
  const bench = new Bench()
  bench.submit([item('a')])
  bench.do({ type: 'deleteJob', job: 0 })
  bench.submit([item('a', 9)])
  expect(codes(bench)[1]).toEqual([OK])
})

it('jobs: a job has ended when it is flushed and all its items have ended, told once', () => {
  const bench = new Bench()
  bench.register(1)
  bench.submit([8])
  bench.do({ type: 'flush', job: 0 })
  expect(bench.of('jobEnded')).toEqual([])
  bench.completeAll()
  expect(bench.of('jobEnded')).toEqual([{ type: 'jobEnded', job: 0 }])
  bench.do({ type: 'flush', job: 0 })
  expect(bench.of('jobEnded').length).toBe(1)
  bench.submit([8])
  bench.do({ type: 'flush', job: 0 })
  bench.completeAll()
  expect(bench.of('jobEnded').length).toBe(2)
})

it('jobs: a job whose items are all leased has not ended', () => {
  const bench = new Bench()
  bench.register(1)
  bench.submit([64])
  bench.do({ type: 'flush', job: 0 })
  expect(bench.of('jobEnded')).toEqual([])
  bench.completeAll()
  expect(bench.of('jobEnded').length).toBe(1)
})

it('jobs: an empty job ends when it is flushed', () => {
  const bench = new Bench()
  bench.do({ type: 'createJob', job: 1 })
  bench.do({ type: 'flush', job: 1 })
  expect(bench.of('jobEnded')).toEqual([{ type: 'jobEnded', job: 1 }])
})

it('S19, S34: with lengths only, no token is kept and every limit counts as if it were', () => {
  const lengthsOnly = { lengthsOnly: true, maxBatchBytes: 4096, maxItemBytes: 400 }
  const bench = new Bench(lengthsOnly)
  const full = new Bench({ maxBatchBytes: 4096, maxItemBytes: 400 })
  for (const one of [bench, full]) {
    one.register(1, { tokens: 4096, batchSize: 64 })
    const lengths = [101, ...Array<number>(30).fill(90)]
    const made = block(one.specs(lengths))
    one.do({
      type: 'submit',
      block: one === bench ? { ...made, tokens: new Int32Array(0) } : made,
    })
    one.do({ type: 'flush', job: null })
    one.completeAll()
  }
  expect(bench.of('submitted')).toEqual(full.of('submitted'))
  expect(bench.settled).toEqual(full.settled)
  expect(bench.sent.map(({ ids, effect }) => [ids, effect.closedBy])).toEqual(
    full.sent.map(({ ids, effect }) => [ids, effect.closedBy]),
  )
  expect(bench.sent[0].effect.closedBy).toBe('byte_limit')
})

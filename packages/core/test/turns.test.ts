// S20a: jobs take turns within a shape, by tokens.

import { expect, it } from 'vitest'
import { RESULT_NACK } from '../src/events.js'
import { Items } from '../src/items.js'
import { ShapeQueue } from '../src/shape-queue.js'
import { Bench } from './helpers.js'

const items = (prefix: string, lengths: readonly number[]) =>
  lengths.map((length, i) => ({ id: `${prefix}${i}`, length }))
const jobsOf = (ids: readonly string[]) => ids.map((id) => id[0]).join('')

/** A bench with jobs 1, 2, … of the given weights. */
function withJobs(weights: readonly number[], over = {}): Bench {
  const bench = new Bench({ maxQueuedItems: 1e6, ...over })
  weights.forEach((weight, i) => {
    bench.do({ type: 'createJob', job: i + 1, weight })
  })
  return bench
}

it('S20a: a job of 100,000 items does not block a later one of 1,000', () => {
  const bench = withJobs([1, 1])
  for (let i = 0; i < 100; i++) bench.submit(items(`a${i}-`, Array(1000).fill(8)), 1)
  bench.submit(items('b', Array(1000).fill(8)), 2)
  bench.register(1, { batchSize: 64, tokens: 512 })
  let done = 0
  const late = () => bench.settled.filter((line) => line.startsWith('b')).length
  while (late() < 1000) bench.complete(bench.sent[done++])
  // 2,000 items in batches of 64, and the two that stand in the channel when the last is settled.
  expect(done).toBeLessThanOrEqual(Math.ceil(2000 / 64) + 2)
})

it('S20a: turns are counted in tokens, not in items', () => {
  const bench = withJobs([1, 1])
  bench.submit(items('a', Array(40).fill(9)), 1)
  bench.submit(items('b', Array(40).fill(16)), 2)
  bench.register(1, { batchSize: 40, tokens: 640 })
  const { ids } = bench.sent[0]
  const tokens = (job: string, length: number) =>
    ids.filter((id) => id.startsWith(job)).length * length
  expect(Math.abs(tokens('a', 9) - tokens('b', 16))).toBeLessThanOrEqual(3 * 16)
})

it('S20a: a job has as many tokens in a turn as its weight says', () => {
  const bench = withJobs([1, 3])
  bench.submit(items('a', Array(40).fill(8)), 1)
  bench.submit(items('b', Array(40).fill(8)), 2)
  bench.register(1, { batchSize: 12, tokens: 96 })
  expect(jobsOf(bench.sent[0].ids)).toBe('abbbabbbabbb')
})

it('S20a: within a job items leave in the order of their arrival', () => {
  const bench = withJobs([1, 2, 1])
  for (const round of [0, 1, 2]) {
    for (const [at, job] of ['a', 'b', 'c'].entries()) {
      bench.submit(items(`${job}${round}`, [3, 8, 5, 7]), at + 1)
    }
  }
  bench.register(1, { batchSize: 4, tokens: 32 })
  bench.completeAll()
  for (const job of ['a', 'b', 'c']) {
    const left = bench.sent.flatMap((sent) => sent.ids).filter((id) => id.startsWith(job))
    expect(left).toEqual([...left].sort())
    expect(left.length).toBe(12)
  }
})

it('S20a: what a job took too much is taken off its next turn', () => {
  const bench = withJobs([1, 1])
  // A turn is 16 tokens: two items of 9 pass it by 2 each time.
  bench.submit(items('a', Array(60).fill(9)), 1)
  bench.submit(items('b', Array(60).fill(16)), 2)
  bench.register(1, { batchSize: 50, tokens: 800 })
  expect(jobsOf(bench.sent[0].ids)).toMatch(/^(aab){4}ab(aab){3}ab/)
})

it('S20a: a job that is done, deleted or on hold has no turn, and one that comes back has', () => {
  const bench = withJobs([1, 1, 1, 1], { maxUnreadResultBytes: 100 })
  for (const [at, job] of ['a', 'b', 'c', 'd'].entries()) {
    bench.submit(items(job, Array(4).fill(8)), at + 1)
  }
  bench.do({ type: 'deleteJob', job: 2 })
  bench.do({ type: 'resultsStored', job: 3, bytes: 200 })
  bench.register(1, { batchSize: 8, tokens: 64 })
  expect(jobsOf(bench.sent[0].ids)).toBe('adadadad')
  bench.submit(items('x', Array(4).fill(8)), 1)
  bench.do({ type: 'resultsRead', job: 3, bytes: 200 })
  expect(jobsOf(bench.sent[1].ids)).toBe('xcxcxcxc')
})

it('S20a: a nacked item comes back behind the others of its job', () => {
  const bench = withJobs([1, 1], { retryDelayMs: 1, channelDepth: 1 })
  bench.submit(items('a', Array(4).fill(8)), 1)
  bench.submit(items('b', Array(2).fill(8)), 2)
  bench.register(1, { batchSize: 2, tokens: 16 })
  bench.taken(bench.sent[0])
  bench.results(bench.sent[0], [RESULT_NACK, RESULT_NACK])
  bench.advance(2)
  bench.taken(bench.sent[1])
  expect(bench.sent.map((sent) => sent.ids.join())).toEqual(['a0,b0', 'a1,b1', 'a2,b0'])
})

it('S20a: the age of the oldest item looks at every job', () => {
  const bench = withJobs([1, 1], { channelDepth: 1 })
  bench.submit(items('a', [8, 8]), 1)
  bench.advance(5)
  bench.submit(items('b', [8]), 2)
  bench.register(1, { batchSize: 1 })
  bench.advance(3)
  // It is job 2's turn now, and job 1 has the oldest.
  expect(bench.sent.map((sent) => sent.ids)).toEqual([['a0']])
  expect(bench.core.counts().oldestItemAgeNs).toBe(8e6)
  bench.do({ type: 'deleteJob', job: 1 })
  expect(bench.core.counts().oldestItemAgeNs).toBe(3e6)
})

it('S20a: an item that is withdrawn, not served, is no part of its job’s turn', () => {
  const items = new Items()
  const queue = new ShapeQueue(8, null)
  const slots = [1, 1, 1, 2, 2, 2].map((job) => {
    const slot = items.alloc()
    items.length.set(slot, 8)
    items.job.set(slot, job)
    queue.push(items, slot, 2)
    return slot
  })
  queue.remove(items, slots[0])
  const served: number[] = []
  while (queue.count > 0) served.push(slots.indexOf(queue.take(items)))
  expect(served).toEqual([1, 2, 3, 4, 5])
  expect(queue.tokens).toBe(0)
  expect(queue.head).toBe(-1)
})

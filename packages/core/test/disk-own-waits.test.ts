// S16 in disk mode: a durable item with a wait of its own stands in the window at once, so that no
// backlog makes it late.
import { expect, it } from 'vitest'
import { SUBMIT_QUEUE_FULL } from '../src/submission.js'
import { DiskBench } from './disk-bench.js'
import type { ItemSpec } from './helpers.js'

const waiting = (id: string, maxWaitMs: number, length = 8): ItemSpec => ({ id, length, maxWaitMs })

/** Seven of eight that fill a batch, of a job that waits for ever. */
const backlogBench = (over = {}) => {
  const bench = new DiskBench({ maxWaitMs: 0, cleanupIdleMs: 1_000_000, ...over })
  bench.register(1)
  bench.keep([8, 8, 8])
  return bench
}

it('is due on time although older items of its shape were not read', () => {
  const bench = backlogBench()
  bench.keep([waiting('own', 20)])
  bench.advance(19)
  expect(bench.sent).toEqual([])
  bench.advance(1)
  // It waits for no read either: those on disk wait for their own batch.
  expect(bench.sentIds()).toEqual([['own']])
})

it('is not brought again by the read that comes to it', () => {
  const bench = backlogBench()
  bench.keep([waiting('own', 20)])
  bench.keep([8, 8])
  bench.do({ type: 'flush', job: 0 })
  bench.completeAll()
  expect(bench.settled.toSorted()).toEqual(
    ['i0', 'i1', 'i2', 'i3', 'i4', 'own'].map((id) => `${id}:completed`),
  )
  const { accepted, waiting: left, queue } = bench.core.counts()
  expect({ accepted, left, disk: queue.disk }).toEqual({
    accepted: 6,
    left: { items: 0, tokens: 0 },
    disk: { items: 0, tokens: 0 },
  })
})

it('keeps its wait when it was read back before the store had told of it', () => {
  const bench = backlogBench()
  const items = bench.admit([waiting('own', 20)])
  bench.only({ type: 'readOut', job: 0 })
  bench.dispatch()
  bench.stored(items)
  bench.advance(20)
  expect(bench.sentIds()).toEqual([['own', 'i0', 'i1', 'i2']])
})

it('S35: expires in the window, when it has a deadline too', () => {
  const bench = new DiskBench({ maxWaitMs: 0 })
  const item: ItemSpec = { id: 'own', length: 8, maxWaitMs: 1000, deadlineMs: 5 }
  bench.stored({ ...bench.admit([item]), deadlineAt: Float64Array.of(5e6) })
  bench.advance(5)
  expect(bench.settled).toEqual(['own:expired'])
})

it('S34: is refused when the window holds too many of them', () => {
  const bench = new DiskBench({ maxWaitMs: 0, readAheadTokens: 0, maxItemBytes: 2 ** 23 })
  const half = 2 ** 19
  bench.keep([waiting('a', 20, half), waiting('b', 20, half)])
  const { sequences } = bench.admit([waiting('c', 20, half)])
  expect([...sequences]).toEqual([0])
  expect([...bench.of('admitted').at(-1)!.codes]).toEqual([SUBMIT_QUEUE_FULL])
  bench.keep([{ id: 'd', length: half }])
  expect(bench.of('admitted').at(-1)!.accepted).toBe(1)
})

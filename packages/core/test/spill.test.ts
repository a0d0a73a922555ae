// The spill of memory mode: what memory has no room for waits on disk, comes back through the same
// window, and is nobody's before what waited longer.
import { describe, expect, it } from 'vitest'
import { SUBMIT_DUPLICATE, SUBMIT_QUEUE_FULL } from '../src/submission.js'
import { DiskBench } from './disk-bench.js'
import type { ItemSpec } from './helpers.js'

const spillBench = (over = {}) => new DiskBench({ mode: 'memory', releaseThreshold: 1, ...over })

const eights = (first: number, count: number): ItemSpec[] =>
  Array.from({ length: count }, (_, i) => ({ id: `i${first + i}`, length: 8 }))

const idsOf = (first: number, count: number) => eights(first, count).map(({ id }) => id)

describe('spills', () => {
  it('begins when memory holds so many items or tokens', () => {
    const bench = spillBench()
    const above = { items: 4, tokens: 100 }
    expect(bench.core.spills(above)).toBe(false)
    bench.submit(eights(0, 3))
    expect(bench.core.spills(above)).toBe(false)
    expect(bench.core.spills({ items: 4, tokens: 24 })).toBe(true)
    bench.submit(eights(3, 1))
    expect(bench.core.spills(above)).toBe(true)
  })

  it('goes on until nothing is on disk or on its way there', () => {
    const bench = spillBench({ channelDepth: 8 })
    const above = { items: 4, tokens: 1000 }
    bench.submit(eights(0, 4))
    const admitted = bench.admit(eights(4, 4))
    bench.core.step({ type: 'cancel', slots: [0, 1, 2, 3], numbers: [1, 2, 3, 4] }, bench.now)
    expect(bench.core.spills(above)).toBe(true)
    bench.stored(admitted)
    expect(bench.core.spills(above)).toBe(true)
    bench.do({ type: 'flush', job: 0 })
    bench.register(1)
    expect(bench.core.counts().queue.disk.items).toBe(0)
    expect(bench.core.spills(above)).toBe(false)
  })
})

it('lanes go before what was spilled, which is younger, and a batch may draw on both', () => {
  const bench = spillBench({ channelDepth: 8 })
  bench.submit(eights(0, 10))
  bench.keep(eights(10, 22))
  bench.register(1)
  expect(bench.sentIds()).toEqual([idsOf(0, 8), idsOf(8, 8), idsOf(16, 8), idsOf(24, 8)])
  expect(bench.sent.map(({ effect }) => effect.source)).toEqual(['lane', 'lane', 'disk', 'disk'])
})

it('the gate opens once something is spilled: the lanes grow no more', () => {
  const bench = spillBench({ releaseThreshold: 1_000_000, gateMaxHoldMs: 0 })
  bench.register(1)
  bench.submit(eights(0, 8))
  expect(bench.core.counts().gate.open).toBe(false)
  bench.keep(eights(8, 8))
  expect(bench.of('gate')).toMatchObject([{ reason: 'disk' }])
})

describe('S36: an id of an item that was spilled', () => {
  const codesOf = (bench: DiskBench, event: 'submitted' | 'admitted') => [
    ...bench.of(event).at(-1)!.codes,
  ]

  it('is known to whatever is submitted to memory later', () => {
    const bench = spillBench()
    bench.keep(eights(0, 2))
    bench.submit(eights(0, 2))
    expect(codesOf(bench, 'submitted')).toEqual([SUBMIT_DUPLICATE, SUBMIT_DUPLICATE])
  })

  it('is forgotten when the disk did not take it: it may be sent again', () => {
    const bench = spillBench()
    const items = bench.admit(eights(0, 2))
    bench.stored({ ...items, codes: items.codes.fill(SUBMIT_QUEUE_FULL) })
    bench.submit(eights(0, 2))
    expect(codesOf(bench, 'submitted')).toEqual([0, 0])
  })

  it.each([
    ['settled', (bench: DiskBench) => bench.register(1)],
    [
      'cancelled on disk',
      (bench: DiskBench) =>
        bench.do({
          type: 'cancelOnDisk',
          job: 0,
          model: 1,
          paddedLength: 8,
          sequences: [1],
          lengths: [8],
        }),
    ],
  ])('is forgotten resultsTtlMs after it was %s', (_, end) => {
    const bench = spillBench({ resultsTtlMs: 10, leaseTimeoutMs: 1_000_000 })
    bench.keep(eights(0, 1))
    bench.do({ type: 'flush', job: 0 })
    end(bench)
    bench.completeAll()
    for (let i = 0; i < 4; i++) bench.advance(11)
    bench.submit(eights(0, 1))
    expect(codesOf(bench, 'submitted')).toEqual([0])
  })
})

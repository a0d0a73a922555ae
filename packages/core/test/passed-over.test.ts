// I7: what has no wait is not passed over for ever (S16, starveBatches).

import { expect, it } from 'vitest'
import { DiskBench } from './disk-bench.js'
import { Bench, type ItemSpec, type Sent } from './helpers.js'

// Tokens 64, batch size 8: a full count is 8 of length 8, 4 of 16, 2 of 24 and 32, 1 of 40 and more.
const HELD = { cleanupIdleMs: 1_000_000 }

const bulk = (count: number, length: number, name = 'b'): ItemSpec[] =>
  Array.from({ length: count }, (_, i) => ({ id: `${name}${i}`, length }))

const has = (id: string) => (sent: Sent) => sent.ids.includes(id)

/** A backlog on disk that is full for ever, beside what is kept in memory. */
function withBacklog(over = {}): DiskBench {
  const bench = new DiskBench({ ...HELD, starveBatches: 20, ...over })
  bench.register(1)
  bench.keep(bulk(1000, 8, 'disk'))
  return bench
}

it('I7: a rare shape under endless common ones leaves within starveBatches batches', () => {
  const bench = new Bench({ ...HELD, starveBatches: 50 })
  bench.register(1)
  bench.submit([{ id: 'rare', length: 24 }])
  for (let i = 0; i < 100; i++) bench.submit(bulk(8, 8, `r${i}-`))
  const batches = bench.workUntil(has('rare'), 60)
  expect(batches).toBeGreaterThanOrEqual(50)
  expect(bench.sent[batches].effect).toMatchObject({ source: 'due', normal: false })
})

it('I7: a very long item among endless short ones leaves by starveBatches, 0 = never', () => {
  const run = (starveBatches: number) => {
    const bench = new Bench({ ...HELD, starveBatches, lengthClasses: [512] })
    bench.register(1, { tokens: 2048, batchSize: 64 })
    bench.do({ type: 'createJob', job: 1 })
    for (let i = 0; i < 60; i++) bench.submit(bulk(4, 500, `s${i}-`))
    bench.submit([{ id: 'long', length: 2000 }], 1)
    bench.submit([{ id: 'other', length: 1000 }], 1)
    bench.completeAll()
    return bench
  }
  expect(run(20).sent.some(has('other'))).toBe(true)
  expect(run(0).sent.some(has('other'))).toBe(false)
})

it('I7: shapes that are passed over for long take turns', () => {
  const bench = new Bench({ ...HELD, starveBatches: 20 })
  bench.register(1)
  bench.submit([24, 32, 16])
  for (let i = 0; i < 100; i++) bench.submit(bulk(8, 8, `r${i}-`))
  for (const id of ['i0', 'i1', 'i2']) bench.workUntil(has(id), 40)
  const due = bench.sent.filter((sent) => sent.effect.source === 'due')
  expect(due).toHaveLength(3)
})

it('I7: a full lane leaves though the disk tier, which goes before it, is always full', () => {
  const bench = withBacklog()
  bench.submit(bulk(4, 16, 'lane'))
  const batches = bench.workUntil(has('lane0'), 40)
  expect(batches).toBeGreaterThanOrEqual(20)
  expect(bench.sent[batches].effect).toMatchObject({ source: 'due', normal: true, fill: 1 })
  expect(bench.sent[batches].effect.sources).toMatchObject({ due: 1, lane: 3 })
})

it('I7: what stands in memory leaves though its own shape always fills batches from disk', () => {
  const bench = withBacklog()
  bench.submit(bulk(12, 8, 'lane'))
  const batches = bench.workUntil(has('lane0'), 40)
  // A whole batch of it, and the rest after as many batches again.
  expect(bench.sent[batches].ids).toEqual(bulk(8, 8, 'lane').map(({ id }) => id))
  expect(bench.workUntil(has('lane8'), 60)).toBeGreaterThanOrEqual(batches + 20)
})

it('I7: a wait that is over does not keep a full lane behind the disk tier', () => {
  const bench = withBacklog({ maxWaitMs: 5 })
  bench.submit(bulk(4, 16, 'lane'))
  // Looked at after 20 batches, one a millisecond: its wait is over by then.
  expect(bench.workUntil(has('lane0'), 60)).toBeGreaterThanOrEqual(20)
})

it('S16: with starveBatches 0 what goes first goes first for ever', () => {
  const bench = withBacklog({ starveBatches: 0 })
  bench.submit(bulk(8, 8, 'lane'))
  for (let done = 0; done < 100; done++) bench.complete(bench.sent[done])
  expect(bench.sent.some(has('lane0'))).toBe(false)
})

it('explain: says by how many batches an item without a wait was passed over', () => {
  const bench = new Bench({ ...HELD, starveBatches: 5, channelDepth: 1 })
  bench.register(1)
  bench.submit([{ id: 'rare', length: 24 }])
  bench.submit(bulk(80, 8))
  const why = () => bench.core.explain(bench.slotOf('rare')).why
  const ageing = () => bench.core.counts().models[0].ageing
  expect(why()).toMatchObject({ dueAt: null, passedOver: { batches: 1, limit: 5 } })
  bench.complete(bench.sent[0])
  expect(why()).toMatchObject({ passedOver: { batches: 2, limit: 5 }, isShapeDue: false })
  expect(ageing()).toEqual({ dueShapes: 0, passedOverShapes: 0, nextDueInNs: null })
  for (const done of [1, 2, 3]) bench.complete(bench.sent[done])
  expect(why()).toMatchObject({ isShapeDue: true })
  expect(ageing()).toMatchObject({ dueShapes: 1, passedOverShapes: 1 })
})

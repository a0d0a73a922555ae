import { expect, it } from 'vitest'
import { Bench, type ItemSpec, MS, type Sent } from './helpers.js'

// Tokens 64, batch size 8: a full count is 8 of length 8, 4 of 16, 2 of 24 and 32, 1 of 40 and more.
const HELD = { cleanupIdleMs: 1_000_000 }

const bulk = (count: number, length: number, name = 'b'): ItemSpec[] =>
  Array.from({ length: count }, (_, i) => ({ id: `${name}${i}`, length }))

const has = (id: string) => (sent: Sent) => sent.ids.includes(id)

it('S16: an item with a wait of 20 ms passes 100,000 bulk items of its shape', () => {
  const bench = new Bench({ ...HELD, maxWaitMs: 300_000 })
  bench.register(1)
  bench.submit(bulk(100_000, 8))
  bench.submit([{ id: 'quick', length: 8, maxWaitMs: 20 }])
  // 20 batches of 1 ms each, and the two that stand in the channel.
  expect(bench.workUntil(has('quick'), 30)).toBeLessThanOrEqual(23)
  const sent = bench.sent.find(has('quick'))!
  expect(sent.ids[0]).toBe('quick')
  expect(sent.effect).toMatchObject({ source: 'due', normal: true, fill: 1 })
  expect(sent.effect.sources).toMatchObject({ due: 1, lane: 7 })
})

it('S16: a shape that is held back leaves when the wait of its job is over, and no earlier', () => {
  const bench = new Bench({ ...HELD, maxWaitMs: 1000 })
  bench.register(1)
  bench.submit([16])
  bench.advance(400)
  bench.submit([16])
  bench.advance(599)
  expect(bench.sent).toEqual([])
  bench.advance(1)
  expect(bench.sent.map((sent) => sent.ids)).toEqual([['i0', 'i1']])
  expect(bench.sent[0].effect).toMatchObject({
    source: 'due',
    normal: false,
    closedBy: 'lane_empty',
  })
  expect(bench.sent[0].effect.sources).toMatchObject({ due: 1, staging: 1 })
})

it('S16: the wait counts from acceptance, also for what comes back behind younger items', () => {
  const bench = new Bench({ ...HELD, maxWaitMs: 1000, retryDelayMs: 100 })
  bench.register(1)
  bench.submit(bulk(4, 16))
  bench.taken(bench.sent[0])
  bench.advance(500)
  bench.submit([{ id: 'younger', length: 16 }])
  bench.results(bench.sent[0], [0, 0, 0, 3])
  bench.advance(499)
  expect(bench.sent).toHaveLength(1)
  bench.advance(1)
  expect(bench.sent[1].ids).toEqual(['b3', 'younger'])
})

it('S16: a job may name its wait, 0 = none, and an item a shorter one', () => {
  const bench = new Bench({ ...HELD, maxWaitMs: 1000 })
  bench.do({ type: 'createJob', job: 1, maxWaitMs: 10 })
  bench.do({ type: 'createJob', job: 2, maxWaitMs: 0 })
  bench.register(1)
  bench.submit([{ id: 'quick', length: 16 }], 1)
  bench.submit([{ id: 'never', length: 24 }], 2)
  bench.submit([{ id: 'longer than its job', length: 32, maxWaitMs: 5000 }], 1)
  bench.advance(10)
  expect(bench.sent.flatMap((sent) => sent.ids)).toEqual(['quick', 'longer than its job'])
  bench.completeAll()
  bench.advance(20_000)
  expect(bench.sent).toHaveLength(2)
  bench.submit([{ id: 'own', length: 40, maxWaitMs: 5 }], 2)
  expect(bench.sent[2].ids).toEqual(['own'])
})

it('S16: what was due first leaves first, in its shape and over shapes', () => {
  const bench = new Bench({ ...HELD, channelDepth: 1 })
  bench.register(1)
  bench.submit([64, 64])
  bench.submit([
    { id: 'late', length: 16, maxWaitMs: 30 },
    { id: 'early', length: 16, maxWaitMs: 10 },
    { id: 'middle', length: 32, maxWaitMs: 20 },
    { id: 'first', length: 24, maxWaitMs: 5 },
  ])
  bench.advance(40)
  bench.completeAll()
  expect(bench.sent.slice(1, 4).map((sent) => sent.ids)).toEqual([
    ['first'],
    ['early', 'late'],
    ['middle'],
  ])
})

it('S16: shorter shapes of at least 0.8 of the length fill a due batch, shorter ones do not', () => {
  const bench = new Bench({ ...HELD, maxWaitMs: 0 })
  bench.register(1, { tokens: 400 })
  bench.submit([72, 80, 64, 56])
  bench.submit([{ id: 'due', length: 80, maxWaitMs: 10 }])
  bench.advance(10)
  expect(bench.sent.map((sent) => sent.ids)).toEqual([['due', 'i1', 'i0', 'i2']])
  expect(bench.sent[0].effect.sources).toMatchObject({ due: 1, staging: 3 })
})

it('S12: due work stands behind reclaimed work and before lanes', () => {
  const bench = new Bench({ ...HELD, channelDepth: 1 })
  bench.register(1)
  bench.register(2)
  bench.submit([64, 40])
  bench.submit(bulk(16, 8))
  bench.submit([{ id: 'due', length: 16, maxWaitMs: 10 }])
  bench.advance(10)
  bench.do({ type: 'drain', consumer: 2 })
  bench.complete(bench.sent[0])
  bench.complete(bench.sent[2])
  bench.complete(bench.sent[3])
  expect(bench.sent.slice(2).map((sent) => sent.effect.source)).toEqual([
    'reclaimed',
    'due',
    'lane',
  ])
})

it('S13: a due batch does not move the round', () => {
  const bench = new Bench({ ...HELD, channelDepth: 1 })
  bench.register(1)
  bench.submit([64])
  bench.submit([...bulk(8, 8, 'a'), ...bulk(4, 16, 'c'), ...bulk(2, 32, 'd'), ...bulk(1, 40)])
  bench.submit([{ id: 'due', length: 32, maxWaitMs: 10 }])
  bench.complete(bench.sent[0])
  bench.advance(10)
  bench.completeAll()
  // After 64 the round began with 8; the due batch of 32 between does not change that 16 is next.
  expect(bench.sent.map((sent) => sent.effect.paddedLength)).toEqual([64, 8, 32, 16, 40])
  expect(bench.sent[2].ids).toEqual(['due', 'd0'])
})

it('S16: full anyway by its job keeps the plain order', () => {
  const bench = new Bench({ ...HELD, maxWaitMs: 10, channelDepth: 1 })
  bench.register(1)
  bench.submit([64])
  bench.submit(bulk(2, 32, 'd'))
  bench.advance(1)
  bench.submit(bulk(8, 8, 'a'))
  bench.advance(20)
  bench.completeAll()
  expect(bench.sent.map((sent) => sent.effect.source)).toEqual(['lane', 'lane', 'lane'])
  expect(bench.sent.map((sent) => sent.effect.paddedLength)).toEqual([64, 8, 32])
})

it('S5: a due item that the free consumer cannot hold waits for one that can', () => {
  const bench = new Bench({ ...HELD, channelDepth: 1 })
  bench.register(1)
  bench.register(2, { tokens: 128 })
  bench.submit([128])
  bench.submit([{ id: 'long', length: 100, maxWaitMs: 10 }])
  bench.advance(10)
  expect(bench.sent).toHaveLength(1)
  bench.complete(bench.sent[0])
  expect(bench.sent[1]).toMatchObject({ consumer: 2, ids: ['long'] })
})

it('S35: items of a paused job are not due until it is resumed, and at once then', () => {
  const bench = new Bench({ ...HELD, maxWaitMs: 50 })
  bench.do({ type: 'createJob', job: 1 })
  bench.register(1)
  bench.submit([16, { id: 'own', length: 24, maxWaitMs: 10 }], 1)
  bench.do({ type: 'pauseJob', job: 1 })
  bench.advance(100)
  expect(bench.sent).toEqual([])
  bench.do({ type: 'resumeJob', job: 1 })
  bench.advance(0)
  expect(bench.sent.map((sent) => sent.ids)).toEqual([['own'], ['i0']])
})

it('S10: the gate opens when an item with a due time of its own is due, and a default opens nothing', () => {
  const open = (over: object, items: ItemSpec[]) => {
    const bench = new Bench({ ...HELD, releaseThreshold: 1_000_000, gateMaxHoldMs: 0, ...over })
    bench.register(1)
    bench.submit(items)
    bench.advance(100)
    return bench
  }
  const own = open({}, [
    { id: 'own', length: 8, maxWaitMs: 20 },
    { id: 'other', length: 64 },
  ])
  expect(own.of('gate')).toMatchObject([{ reason: 'due', heldNs: 20 * MS }])
  expect(own.sent[0].ids).toEqual(['own'])
  expect(open({ maxWaitMs: 20 }, [{ id: 'i', length: 8 }]).of('gate')).toEqual([])
  const plain = open({ gateOpensOn: 'threshold' }, [{ id: 'i', length: 8, maxWaitMs: 20 }])
  expect(plain.of('gate')).toEqual([])
})

it('S10: a due time that passed before the first consumer came opens the gate for it', () => {
  const bench = new Bench({ ...HELD, releaseThreshold: 1_000_000, gateMaxHoldMs: 0 })
  bench.do({ type: 'createJob', job: 1, maxWaitMs: 20 })
  bench.submit([16], 1)
  bench.advance(100)
  bench.register(1)
  expect(bench.of('gate')).toMatchObject([{ reason: 'due' }])
  expect(bench.sent[0].effect.source).toBe('due')
})

it('S29: while something is due there is no cleanup', () => {
  const bench = new Bench({ maxWaitMs: 40, cleanupIdleMs: 50 })
  bench.register(1)
  bench.submit([16])
  bench.advance(45)
  expect(bench.sent).toHaveLength(1)
  expect(bench.of('cleanup')).toEqual([])
})

it('S16: an item that ends while it waits leaves nothing due behind', () => {
  const bench = new Bench({ ...HELD, maxWaitMs: 1000 })
  bench.submit([
    { id: 'own', length: 16, maxWaitMs: 10 },
    { id: 'default', length: 24 },
  ])
  bench.advance(2000)
  bench.cancel(['own', 'default'])
  bench.advance(0)
  bench.register(1)
  bench.submit([16, 24])
  expect(bench.sent).toEqual([])
  bench.advance(999)
  expect(bench.sent).toEqual([])
  bench.advance(1)
  expect(bench.sent.map((sent) => sent.effect.paddedLength)).toEqual([16, 24])
})

it('S14: an item with a default wait costs no timer of its own', () => {
  const bench = new Bench({ ...HELD, maxWaitMs: 1000 })
  bench.submit(bulk(1000, 16))
  let ticks = 0
  while (bench.core.nextWorkAt() < Number.POSITIVE_INFINITY) {
    bench.now = bench.core.nextWorkAt()
    bench.do({ type: 'tick' })
    ticks++
  }
  expect(ticks).toBeLessThanOrEqual(2)
})

it('explain: says when an item is due, by its own wait or its job’s, and what ages in the model', () => {
  const bench = new Bench({ ...HELD, maxWaitMs: 1000 })
  bench.register(1)
  bench.submit([16, { id: 'own', length: 24, maxWaitMs: 300 }])
  bench.advance(100)
  const why = (id: string) => bench.core.explain(bench.slotOf(id)).why
  expect(why('i0')).toMatchObject({ dueAt: 1000 * MS, passedOver: null, isShapeDue: false })
  expect(why('own')).toMatchObject({ dueAt: 300 * MS, isShapeDue: false })
  const ageing = () => bench.core.counts().models[0].ageing
  expect(ageing()).toEqual({ dueShapes: 0, passedOverShapes: 0, nextDueInNs: 900 * MS })
  bench.do({ type: 'room', consumer: 1, hasRoom: false })
  bench.advance(300)
  expect(why('own')).toMatchObject({ dueAt: 300 * MS, isShapeDue: true })
  expect(ageing()).toEqual({ dueShapes: 1, passedOverShapes: 0, nextDueInNs: 600 * MS })
})

// S20: coarser length classes, and how items of unlike lengths leave one lane.

import { expect, it } from 'vitest'
import { LengthClasses } from '../src/length-classes.js'
import { Bench } from './helpers.js'

const idsOf = (bench: Bench) => bench.sent.map((sent) => sent.ids.join())

it('S20: by default every multiple of roundTo is a class', () => {
  const classes = new LengthClasses(8, [])
  const edge = (length: number) => 8 * classes.classKey(classes.paddedKey(length))
  expect([1, 8, 9, 500, 2 ** 31 - 1].map(edge)).toEqual([8, 8, 16, 504, 2 ** 31])
  expect(classes.isMixed(classes.paddedKey(500))).toBe(false)
})

it('S20: edges make coarser classes; beyond the last, lengths go on by roundTo', () => {
  const classes = new LengthClasses(8, [8, 100, 256])
  const edge = (length: number) => 8 * classes.classKey(classes.paddedKey(length))
  expect([1, 8, 9, 100, 104, 105, 256, 257, 264, 265].map(edge)).toEqual([
    8, 8, 104, 104, 104, 256, 256, 264, 264, 272,
  ])
  const isMixed = (length: number) => classes.isMixed(classes.classKey(classes.paddedKey(length)))
  expect([1, 9, 200, 257].map(isMixed)).toEqual([false, true, true, false])
})

it('S20: edges that round to the same padded length are one', () => {
  const classes = new LengthClasses(16, [17, 20, 32, 33])
  expect([1, 17, 33, 49].map((length) => classes.classKey(classes.paddedKey(length)))).toEqual([
    2, 2, 3, 4,
  ])
})

it('S20, S13: a lane is ready by its edge, and a batch is padded to its own longest item', () => {
  const bench = new Bench({ lengthClasses: [32, 128] })
  bench.register(1, { batchSize: 100, tokens: 128 })
  bench.submit([3, 10, 20])
  expect(bench.sent).toEqual([])
  bench.submit([12])
  expect(bench.of('activate')).toMatchObject([{ paddedLength: 32 }])
  expect(bench.sent[0].effect).toMatchObject({ size: 4, paddedLength: 24, normal: true })
})

it('S20: like leaves with like, the oldest first', () => {
  const bench = new Bench({ lengthClasses: [128], channelDepth: 4 })
  bench.submit([10, 100, 12, 90, 9, 101, 95, 11])
  bench.register(1, { batchSize: 4, tokens: 4096 })
  expect(idsOf(bench)).toEqual(['i0,i2,i4,i7', 'i1,i5,i3,i6'])
})

it('S20: where nothing as long waits, the next shorter goes before the next longer', () => {
  const bench = new Bench({ lengthClasses: [128] })
  bench.submit([40, 100, 60, 30, 10])
  bench.register(1, { batchSize: 5, tokens: 4096 })
  expect(idsOf(bench)).toEqual(['i0,i3,i4,i2,i1'])
})

it('S20: no item leaves while one waits that arrived more than overtakeLimit arrivals earlier', () => {
  const lengths = [8, 100, 8, 8, 8, 8, 8, 8]
  const sent = (overtakeLimit: number) => {
    const bench = new Bench({ lengthClasses: [128], overtakeLimit, channelDepth: 4 })
    bench.submit(lengths)
    bench.register(1, { batchSize: 4, tokens: 4096 })
    return idsOf(bench)
  }
  expect(sent(1000)).toEqual(['i0,i2,i3,i4', 'i1,i5,i6,i7'])
  expect(sent(3)).toEqual(['i0,i2,i3,i4', 'i1,i5,i6,i7'])
  expect(sent(2)).toEqual(['i0,i2,i3,i1', 'i4,i5,i6,i7'])
  expect(sent(0)).toEqual(['i0,i1,i2,i3', 'i4,i5,i6,i7'])
})

it('S20: the bound holds for arrivals that have left, too', () => {
  const bench = new Bench({ lengthClasses: [128], overtakeLimit: 6, channelDepth: 4 })
  bench.register(1, { batchSize: 4, tokens: 4 * 128 })
  // The lane is ready at 4, and more short ones keep coming while the long one waits.
  bench.submit([8, 100, 8, 8])
  bench.submit(Array(40).fill(8))
  bench.completeAll()
  const order = bench.sent.flatMap((sent) => sent.ids)
  expect(order.indexOf('i1')).toBeLessThanOrEqual(7)
})

it('S20a, S20: jobs take turns, and the overtaking counts within each', () => {
  const bench = new Bench({ lengthClasses: [64], overtakeLimit: 2 })
  bench.do({ type: 'createJob', job: 1 })
  const specs = (job: string, lengths: number[]) =>
    lengths.map((length, i) => ({ id: `${job}${i}`, length }))
  bench.submit(specs('a', [64, 64, 64, 64]), 0)
  bench.submit(specs('b', [8, 64, 8, 8, 64, 64]), 1)
  bench.register(1, { batchSize: 10, tokens: 4096 })
  expect(idsOf(bench)).toEqual(['a0,b1,a1,b0,b4,a2,b2,b5,a3,b3'])
})

it('S31: in cleanup a class of several lengths leaves longest first', () => {
  const bench = new Bench({ lengthClasses: [64] })
  bench.register(1, { batchSize: 100, tokens: 256 })
  bench.submit([8, 64, 40])
  bench.do({ type: 'flush', job: null })
  expect(idsOf(bench)).toEqual(['i1,i2,i0'])
  expect(bench.sent[0].effect.cleanup).toBe(true)
})

it('S5: a class beyond the budget is told at registration, and its items go as few as there are', () => {
  const bench = new Bench({ lengthClasses: [512] })
  bench.register(1, { batchSize: 8, tokens: 256, inputLength: 100 })
  expect(bench.of('registered')[0].warnings[0]).toContain('length 512')
  bench.submit([60, 60, 60])
  expect(bench.sent.map(({ effect }) => [effect.size, effect.normal])).toEqual([[3, false]])
  bench.submit([300])
  expect(bench.sent[1].effect.closedBy).toBe('alone')
})

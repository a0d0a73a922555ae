// S17 and S18 in readiness and packing: what a contract's tokens bound, by rule, layout and rounding.

import { expect, it } from 'vitest'
import type { Contract, CoreConfig } from '../src/core-config.js'
import { Bench } from './helpers.js'

const actual: Partial<CoreConfig> = { budgetRule: 'actual' }
const ragged = { batchSize: 100, tokens: 100, layout: 'ragged' } as const

/** Submits items of one length, one at a time, until a batch leaves. */
function readyAfter(bench: Bench, length: number): number {
  for (let count = 1; count <= 200; count++) {
    bench.submit([length])
    if (bench.sent.length > 0) return count
  }
  return -1
}

function withConsumer(over: Partial<CoreConfig>, contract: Partial<Contract>): Bench {
  const bench = new Bench(over)
  bench.register(1, contract)
  return bench
}

it('S18: a shape is ready when its tokens exceed tokens - its longest item', () => {
  // The longest of the shape is 16: more than 84 tokens have no room for another.
  const bench = withConsumer(actual, ragged)
  expect(readyAfter(bench, 9)).toBe(10)
  expect(bench.sent[0].effect).toMatchObject({
    size: 10,
    actualTokens: 90,
    budgetTokens: 90,
    fill: 0.9,
    closedBy: 'token_limit',
    normal: true,
  })
})

it('S18: the sum of lengths is at most tokens', () => {
  const bench = new Bench(actual)
  bench.submit(Array(30).fill(9))
  bench.submit(Array(30).fill(16))
  bench.register(1, { ...ragged, maxInFlight: 8 })
  bench.do({ type: 'flush', job: null })
  bench.completeAll()
  expect(bench.settled.length).toBe(60)
  for (const { effect } of bench.sent) expect(effect.actualTokens).toBeLessThanOrEqual(100)
  expect(bench.sent[0].effect.size).toBe(11)
})

it('S18: or when it holds batchSize items', () => {
  const bench = withConsumer(actual, { ...ragged, batchSize: 4 })
  expect(readyAfter(bench, 9)).toBe(4)
  expect(bench.sent[0].effect).toMatchObject({ size: 4, closedBy: 'item_limit', fill: 0.36 })
})

it('S18: for the padded layout items x padded length is at most 1.25 x tokens', () => {
  const bench = withConsumer(actual, { ...ragged, layout: 'padded' })
  expect(readyAfter(bench, 1)).toBe(15)
  expect(bench.sent[0].effect).toMatchObject({
    size: 15,
    actualTokens: 15,
    budgetTokens: 15,
    closedBy: 'token_limit',
  })
  const whole = withConsumer(actual, { ...ragged, layout: 'padded' })
  expect(readyAfter(whole, 15)).toBe(6)
  expect(whole.sent[0].effect).toMatchObject({ actualTokens: 90, closedBy: 'token_limit' })
})

it('S18: the padded layout is padded by the consumer’s own roundTo', () => {
  const bench = withConsumer(actual, { ...ragged, layout: 'padded', roundTo: 64 })
  expect(readyAfter(bench, 8)).toBe(1)
  const finer = withConsumer(actual, { ...ragged, layout: 'padded', roundTo: 32 })
  expect(readyAfter(finer, 8)).toBe(3)
})

it('S18, S5: an item within the tokens whose shape is not goes as it comes, not alone', () => {
  const bench = withConsumer({ ...actual, channelDepth: 4 }, ragged)
  bench.submit([98])
  bench.submit([103])
  expect(bench.sent.map(({ effect }) => [effect.closedBy, effect.normal])).toEqual([
    ['token_limit', false],
    ['alone', false],
  ])
  expect(bench.core.counts().aloneBatches).toBe(1)
})

it('S17: under the padded rule a ragged layout changes nothing', () => {
  for (const layout of ['padded', 'ragged'] as const) {
    const bench = withConsumer({}, { batchSize: 100, tokens: 100, layout })
    expect(readyAfter(bench, 17)).toBe(4)
    expect(bench.sent[0].effect).toMatchObject({ budgetTokens: 96, closedBy: 'token_limit' })
  }
})

it('S17: a lane is ready by the consumer’s own roundTo, and packed by it', () => {
  const bench = withConsumer({}, { batchSize: 100, tokens: 64, roundTo: 32 })
  expect(readyAfter(bench, 8)).toBe(2)
  expect(bench.sent[0].effect).toMatchObject({ paddedLength: 32, fill: 1, closedBy: 'token_limit' })
})

it('S13: consumers of unequal contracts are ready each by its own full count', () => {
  const bench = new Bench({ ...actual, channelDepth: 1 })
  bench.register(1, { ...ragged, tokens: 64 })
  bench.register(2, { ...ragged, tokens: 40, batchSize: 3 })
  expect(readyAfter(bench, 8)).toBe(3)
  expect(bench.sent[0]).toMatchObject({ consumer: 2, effect: { closedBy: 'item_limit' } })
  bench.submit(Array(8).fill(8))
  expect(bench.sent[1]).toMatchObject({ consumer: 1, effect: { size: 8, fill: 1 } })
})

it('S18, S13: under the batch-size rule only items count', () => {
  const bench = withConsumer({ ...actual, readyRule: 'batch-size' }, { ...ragged, batchSize: 20 })
  expect(readyAfter(bench, 16)).toBe(20)
  expect(bench.sent[0].effect.size).toBe(6)
})

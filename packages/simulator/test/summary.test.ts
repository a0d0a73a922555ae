// The last line: every field from scenarios small enough to count by hand.
import { expect, it } from 'vitest'
import { Ratios } from '../src/report/ratios.js'
import { gpu, items, of, run } from './run.js'

const open = { releaseThreshold: 1 }

it('summary: every field of a run that can be counted by hand', () => {
  const { summary } = run({
    config: open,
    consumers: [gpu({ script: [{ item: 'b', do: 'fail' }] })],
    events: [
      { atUs: 0, submit: [...items('abcd', 7), ...items('ef', 16)] },
      { atUs: 50, submit: items('g', 5) },
      { atUs: 200, flush: {} },
    ],
  })
  const fill = (p: number) => ({ p1: p, p10: p, p50: p, p90: p, p99: p, mean: p })
  expect(summary).toEqual({
    type: 'summary',
    items: 7,
    settled: { completed: 6, failed: 1, expired: 0, cancelled: 0, quarantined: 0 },
    left: 0,
    batches: 3,
    normal: { batches: 2, items: 6 },
    fill: { all: { p1: 0.25, p10: 0.25, p50: 1, p90: 1, p99: 1, mean: 0.75 }, normal: fill(1) },
    // 4 x 7 + 2 x 16 + 5 of 32 + 32 + 8
    waste: 0.0972,
    // 16 16 | 7 7 7 7 | 5
    sort: {
      batches: 3,
      waste: 0.0972,
      fill: { p1: 0.25, p10: 0.25, p50: 1, p90: 1, p99: 1, mean: 0.75 },
    },
    closedBy: { token_limit: 2, item_limit: 0, byte_limit: 0, lane_empty: 1, alone: 0 },
    switches: 2,
    gate: { heldUs: 0, reason: 'threshold' },
    cleanup: { entries: 1, us: 0, batches: 1, items: 1 },
    consumers: {
      // 132 + 132, until 264; g waits for no one: 264 to 372
      gpu0: { busyUs: 372, idleUs: 0, idleShare: 0, batches: 3 },
    },
    makespanUs: 372,
  })
})

it('summary: idle time counts from the first dispatch, its share is of the time until input ends', () => {
  const { summary } = run({
    config: open,
    consumers: [gpu(), gpu({ name: 'gpu1' })],
    events: [
      { atUs: 1000, submit: items('abcd') },
      { atUs: 1400, submit: items('efgh') },
    ],
  })
  expect(summary.makespanUs).toBe(1532)
  // One works 1000 to 1132, the other 1400 to 1532; input ended at 1400.
  expect(summary.consumers).toEqual({
    gpu0: { busyUs: 132, idleUs: 400, idleShare: 0.67, batches: 1 },
    gpu1: { busyUs: 132, idleUs: 400, idleShare: 1, batches: 1 },
  })
})

it('summary: with all input at once the idle share is of the whole run', () => {
  const { summary } = run({
    config: open,
    consumers: [gpu(), gpu({ name: 'gpu1' })],
    events: [{ atUs: 0, submit: items('abcd') }],
  })
  expect(summary.consumers.gpu0.idleShare).toBe(0)
  expect(summary.consumers.gpu1).toEqual({ busyUs: 0, idleUs: 132, idleShare: 1, batches: 0 })
})

it('summary: the gate’s hold is told, and items of a model that nobody serves are left', () => {
  const { summary } = run({
    consumers: [gpu()],
    events: [
      { atUs: 0, submit: [...items('ab'), ...items('z', 8, { model: 7 })] },
      { atUs: 250, flush: { model: 1 } },
    ],
  })
  expect(summary.gate).toEqual({ heldUs: 250, reason: 'flush' })
  expect(summary).toMatchObject({ items: 3, left: 1, settled: { completed: 2 } })
})

it('summary: percentiles are by nearest rank', () => {
  const ratios = new Ratios()
  for (let i = 1; i <= 200; i++) ratios.add(i / 200)
  expect(ratios.percentiles()).toEqual({
    p1: 0.01,
    p10: 0.1,
    p50: 0.5,
    p90: 0.9,
    p99: 0.99,
    mean: 0.5025,
  })
  const few = new Ratios()
  few.add(0.5)
  few.add(1)
  expect(few.percentiles()).toEqual({ p1: 0.5, p10: 0.5, p50: 0.5, p90: 1, p99: 1, mean: 0.75 })
})

it('summary: a cleanup that a restart breaks off counts until then', () => {
  const ran = run({
    config: { channelDepth: 1, spanWaste: [0] },
    consumers: [gpu({ batchSize: 3, tokens: 64, service: { fixedUs: 10_000 } })],
    events: [
      // 32 24 is taken, 16 16 8 stands in the channel, and the last 8 waits in cleanup.
      { atUs: 0, submit: [8, 8, 16, 16, 24, 32].map((length, i) => ({ id: `i${i}`, length })) },
      { atUs: 100, flush: {} },
      { atUs: 1000, restart: {} },
    ],
  })
  expect(of(ran, 'cleanup')).toMatchObject([{ atUs: 100, state: 'begin' }])
  expect(ran.summary.cleanup).toEqual({ entries: 1, us: 900, batches: 2, items: 5 })
})

// The same workload under other rules, from scenarios small enough to pack by hand.
import { expect, it } from 'vitest'
import { compare, parseScenario } from '../src/index.js'
import { gpu, items, run, type Setting } from './run.js'

const compared = (scenario: Setting) => compare(parseScenario(JSON.stringify(scenario)))

it('compare: each rule packs the same items in its own way', async () => {
  const { rules, sort } = await compared({
    consumers: [gpu({ inputLength: 16 })],
    events: [{ atUs: 0, submitMany: { count: 6, lengths: [16, 8, 8] }, thenFlush: true }],
  })
  // Padded to 32: 16 8 | 8 16 | 8 8, and by count the same. Sorted: 16 16 | 8 8 8 8.
  expect(rules.map(({ rule, batches, waste }) => [rule, batches, waste])).toEqual([
    ['first-come padded budget', 3, 0.2],
    ['first-come fixed count', 3, 0.2],
    ['sorted windows (8 x batch)', 2, 0],
    ['ours', 2, 0],
  ])
  expect([sort.batches, sort.waste]).toEqual([2, 0])
  // 132 us a full batch; the third of the others holds half as much.
  expect(rules.map(({ makespanUs }) => makespanUs)).toEqual([380, 380, 264, 264])
  // By the others the batches are taken at 0, 132 and 264; the sorted ones at 0 and 132.
  expect(rules.map(({ meanWaitUs }) => meanWaitUs)).toEqual([132, 132, 88, 44])
})

it('compare: ours is the run that the summary tells of', async () => {
  const scenario = {
    consumers: [gpu(), gpu({ name: 'gpu1' })],
    events: [{ atUs: 0, submitMany: { count: 500, lengths: [3, 9, 40, 22], everyUs: 7 } }],
  }
  const { ours, rules } = await compared(scenario)
  const { summary } = run(scenario)
  expect(ours.summary).toEqual(summary)
  expect(rules[3]).toMatchObject({ items: 500, left: 0, batches: summary.batches })
  expect(rules.every(({ items, left }) => items === 500 && left === 0)).toBe(true)
})

it('compare: what the others know nothing of is left out and told', async () => {
  const { leftOut, ours } = await compared({
    consumers: [gpu({ script: [{ nth: 1, do: 'fail' }] })],
    events: [
      { atUs: 0, submit: items('abcd', 8, { poison: true }) },
      { atUs: 10, kill: 'gpu0' },
    ],
  })
  expect(leftOut).toEqual(['poison', 'events[1].kill', 'the script of gpu0'])
  expect(ours.summary).toMatchObject({ settled: { completed: 4 }, batches: 1 })
})

it('compare: a bounded queue holds the producer back under every rule', async () => {
  const { rules } = await compared({
    config: { maxQueuedItems: 8 },
    consumers: [gpu({ inputLength: 8 })],
    events: [{ atUs: 0, submitMany: { count: 40, lengths: [8] }, thenFlush: true }],
  })
  for (const { items, left, meanWaitUs, makespanUs } of rules) {
    expect([items, left, makespanUs]).toEqual([40, 0, 1320])
    // At most 8 wait in the queue, and with ours 8 more in the channel.
    expect(meanWaitUs).toBeLessThan(4 * 132)
  }
})

it('compare: an item that no queue has room for holds no rule back', async () => {
  const { rules } = await compared({
    config: { maxQueuedTokens: 100 },
    consumers: [gpu()],
    events: [{ atUs: 0, submitMany: { count: 30, lengths: [8, 200] }, thenFlush: true }],
  })
  expect(rules.map(({ items, left }) => [items, left])).toEqual(Array(4).fill([15, 0]))
})

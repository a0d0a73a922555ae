// What goes wrong on purpose: poison, memory, deadlines, cancels, pauses, as lines.
import { expect, it } from 'vitest'
import { gpu, items, of, run } from './run.js'

const open = { releaseThreshold: 1 }

it('S27: a poison item is found by halves and quarantined, and its neighbours complete', () => {
  const ran = run({
    config: open,
    consumers: [gpu({ respawnMs: 1 }), gpu({ name: 'gpu1', respawnMs: 1 })],
    events: [
      { atUs: 0, submit: items('abcd').map((one) => ({ ...one, poison: one.id === 'c' })) },
      { atUs: 1, flush: {} },
    ],
  })
  expect(of(ran, 'quarantine').map(({ item }) => item)).toEqual(['c'])
  expect(ran.summary).toMatchObject({ left: 0, settled: { completed: 3, quarantined: 1 } })
  const groups = of(ran, 'dispatch').map(({ group, items }) => [items.join(''), group !== null])
  expect(groups[0]).toEqual(['abcd', false])
  expect(groups.slice(1).every(([, isGroup]) => isGroup)).toBe(true)
  // At most ceil(log2 4) + 3.
  expect(of(ran, 'dead').length).toBeLessThanOrEqual(5)
})

it('S28: a batch that is too much for the device comes back in halves, an item alone fails', () => {
  const ran = run({
    config: { ...open, retryDelayMs: 1, maxAttempts: 2 },
    consumers: [gpu({ script: [{ item: 'b', do: 'oom' }] })],
    events: [
      { atUs: 0, submit: items('abcd') },
      { atUs: 1, flush: {} },
    ],
  })
  expect(of(ran, 'dispatch').map((line) => line.items.join(''))).toEqual(
    expect.arrayContaining(['abcd', 'ab', 'cd', 'a', 'b']),
  )
  expect(ran.summary).toMatchObject({ left: 0, settled: { completed: 3, failed: 1 } })
})

it('S28: an nth batch that runs out of memory halves the budget of the next ones', () => {
  const ran = run({
    config: open,
    consumers: [gpu({ script: [{ nth: 1, do: 'oom' }] })],
    events: [{ atUs: 0, submitMany: { count: 40, lengths: [8] }, thenFlush: true }],
  })
  expect(of(ran, 'dispatch').at(-1)?.items.length).toBe(2)
  expect(ran.summary).toMatchObject({ left: 0, settled: { completed: 40 } })
})

it('S35: an item whose deadline passes while it waits expires on time, with batch null', () => {
  const ran = run({
    config: { releaseThreshold: 1000, gateMaxHoldMs: 0 },
    consumers: [gpu()],
    events: [
      { atUs: 5, submit: items('a', 8, { deadlineMs: 3 }) },
      { atUs: 5, submitMany: { count: 1, lengths: [8], deadlineMs: 4 } },
    ],
  })
  expect(of(ran, 'settle')).toEqual([
    { type: 'settle', atUs: 3005, batch: null, consumer: null, results: [['a', 'expired']] },
    { type: 'settle', atUs: 4005, batch: null, consumer: null, results: [['m0', 'expired']] },
  ])
})

it('S35: a cancelled item settles at once; leased, its batch goes on and its result is late', () => {
  const ran = run({
    config: open,
    consumers: [gpu()],
    events: [
      { atUs: 0, submit: items('abcd') },
      { atUs: 20, submit: items('x', 8, { job: 'other' }) },
      { atUs: 50, cancel: ['b', 'x', 'nobody'] },
    ],
  })
  expect(of(ran, 'settle').map(({ atUs, batch, results }) => [atUs, batch, results])).toEqual([
    [50, 1, [['b', 'cancelled']]],
    [50, null, [['x', 'cancelled']]],
    [
      132,
      1,
      [
        ['a', 'completed'],
        ['c', 'completed'],
        ['d', 'completed'],
      ],
    ],
  ])
  expect(of(ran, 'late')).toEqual([{ type: 'late', atUs: 132, item: 'b' }])
})

it('S35: items of a paused job wait until it is resumed', () => {
  const ran = run({
    config: open,
    consumers: [gpu()],
    events: [
      { atUs: 0, pause: 'j' },
      { atUs: 1, submit: items('abcd', 8, { job: 'j' }) },
      { atUs: 700, resume: 'j' },
    ],
  })
  expect(of(ran, 'dispatch').map(({ atUs }) => atUs)).toEqual([700])
})

it('poison: behind another batch in flight it kills too, also when batches take no time', () => {
  const ran = run({
    config: { releaseThreshold: 1 },
    consumers: [gpu({ maxInFlight: 2, service: {}, respawnMs: 1 })],
    events: [{ atUs: 0, submit: [...items('abcdefg'), { id: 'h', length: 8, poison: true }] }],
  })
  expect(ran.summary).toMatchObject({ left: 0, settled: { completed: 7, quarantined: 1 } })
})

it('restart: a stream that the full queue held back goes on in the new life', () => {
  const ran = run({
    config: { maxQueuedItems: 3 },
    events: [
      { atUs: 0, submitMany: { count: 8, lengths: [8] } },
      { atUs: 10, restart: {} },
      { atUs: 20, restart: {} },
    ],
  })
  expect(ran.summary).toMatchObject({ items: 8, left: 8 })
})

it('S24: a consumer that is given up while it works connects anew', () => {
  const ran = run({
    config: { releaseThreshold: 1, leaseMaxMs: 100 },
    consumers: [gpu({ service: { fixedUs: 250_000 } }), gpu({ name: 'gpu1' })],
    events: [{ atUs: 0, submitMany: { count: 12, lengths: [8] }, thenFlush: true }],
  })
  expect(of(ran, 'dead')).toMatchObject([{ consumer: 'gpu0', cause: 'lease_max' }])
  const [{ atUs }] = of(ran, 'dead')
  expect(of(ran, 'register').at(-1)).toMatchObject({ atUs, consumer: 'gpu0' })
  expect(ran.summary).toMatchObject({ left: 0, settled: { completed: 12 } })
})

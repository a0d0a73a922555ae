// Disk mode: what is accepted outlives the broker, and what is not durable does not.
import { expect, it } from 'vitest'
import { gpu, items, of, run, story } from './run.js'

const disk = { mode: 'disk' }

it('disk mode: the gate is open at once, and batches come from the disk (S8, S12)', () => {
  const ran = run({
    config: disk,
    consumers: [gpu()],
    events: [{ atUs: 5, submitMany: { count: 9, lengths: [8] }, thenFlush: true }],
  })
  expect(of(ran, 'gate')).toMatchObject([{ reason: 'disk' }])
  expect(of(ran, 'dispatch').map(({ source, items }) => [source, items.length])).toEqual([
    ['disk', 4],
    ['disk', 4],
    ['disk', 1],
  ])
  expect(ran.summary).toMatchObject({ items: 9, left: 0, settled: { completed: 9 } })
})

it('disk mode: a restart loses nothing that is durable, and what is not', () => {
  const ran = run({
    config: disk,
    consumers: [gpu()],
    events: [
      { atUs: 0, submit: [...items('abcdefghi'), ...items('xy', 16, { durable: false })] },
      { atUs: 10, flush: {} },
      { atUs: 200, restart: {} },
    ],
  })
  // a to d were settled at 132; e to h are worked on, and come again.
  expect(of(ran, 'restart')).toEqual([{ type: 'restart', atUs: 200, lost: 2 }])
  expect(of(ran, 'late').map(({ item }) => item)).toEqual(['e', 'f', 'g', 'h'])
  expect(ran.summary).toMatchObject({ items: 11, left: 2, settled: { completed: 9 } })
})

it('disk mode: the store knows the ids of earlier lives (S36)', () => {
  const ran = run({
    config: disk,
    consumers: [gpu()],
    events: [
      { atUs: 0, submit: items('abcd', 8, { job: 'j' }) },
      { atUs: 500, restart: {} },
      {
        atUs: 600,
        submit: [...items('a', 8, { job: 'j' }), ...items('b', 9, { job: 'j' })],
      },
    ],
  })
  expect(of(ran, 'duplicate')).toMatchObject([{ item: 'a' }])
  expect(of(ran, 'refuse')).toMatchObject([{ item: 'b', code: 'FABRIC_ID_CONFLICT' }])
  expect(ran.summary).toMatchObject({ items: 4, left: 0 })
})

it('disk mode: a stream waits while the queue is full', () => {
  const { summary } = run({
    config: { ...disk, maxQueuedItems: 16 },
    consumers: [gpu(), gpu({ name: 'gpu1', respawnMs: 1 })],
    events: [
      { atUs: 0, submitMany: { count: 400, lengths: [8, 3, 17] }, thenFlush: true },
      { atUs: 900, kill: 'gpu1' },
      { atUs: 2000, restart: {} },
    ],
  })
  expect(summary).toMatchObject({ items: 400, left: 0, settled: { completed: 400 } })
})

it('disk mode: the line of a restart comes before what the new life does', () => {
  const ran = run({ config: disk, consumers: [gpu()], events: [{ atUs: 5, restart: {} }] })
  expect(story(ran)).toEqual(['0 gate', '0 register', '5 restart', '5 gate', '5 register'])
})

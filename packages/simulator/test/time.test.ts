// The virtual clock: what comes first at one time, and where fractions go.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { temporaryFolder } from './folder.js'
import { gpu, items, of, run, story } from './run.js'

const open = { releaseThreshold: 1 }

it('time: completions come before deaths, deaths before what is listed, dispatch comes last', () => {
  const ran = run({
    config: open,
    consumers: [gpu()],
    events: [
      { atUs: 0, submit: items('abcd') },
      { atUs: 132, submit: items('efgh') },
      { atUs: 132, kill: 'gpu0' },
      { atUs: 132, register: gpu({ name: 'gpu1' }) },
    ],
  })
  expect(story(ran).slice(5)).toEqual([
    '132 settle',
    '132 dead',
    '132 register',
    '132 dispatch',
    '132 taken',
    '264 settle',
  ])
})

it('time: events of one time act in the order in which they are listed', () => {
  const ran = run({
    config: open,
    consumers: [gpu()],
    events: [
      { atUs: 10, submit: items('ab') },
      { atUs: 10, submitMany: { count: 2, lengths: [8] } },
      { atUs: 10, submit: items('cd') },
    ],
  })
  expect(of(ran, 'dispatch').flatMap((line) => line.items)).toEqual([
    ...['a', 'b', 'm0', 'm1'],
    ...['c', 'd'],
  ])
})

it('time: events need not stand in order of time', () => {
  const ran = run({
    config: open,
    consumers: [gpu()],
    events: [
      { atUs: 20, submit: items('ab') },
      { atUs: 10, submit: items('cd') },
    ],
  })
  expect(of(ran, 'dispatch')[0].items).toEqual(['c', 'd', 'a', 'b'])
})

it('time: fractions of a nanosecond are dropped, lines tell whole microseconds', () => {
  const ran = run({
    config: open,
    consumers: [gpu({ service: { fixedUs: 0.0019, perPaddedTokenNs: 31.25 } })],
    events: [{ atUs: 1.0009, submit: items('abcd') }],
  })
  // 1000 ns + 1 ns + 1000 ns
  expect(of(ran, 'settle')[0].atUs).toBe(2)
  expect(ran.summary.consumers.gpu0.busyUs).toBe(1)
})

it('time: submitMany cycles its lengths, one item every so many microseconds', () => {
  const ran = run({
    config: { ...open, cleanupIdleMs: 0 },
    consumers: [gpu({ service: { fixedUs: 0 } })],
    events: [{ atUs: 10, submitMany: { count: 4, lengths: [3, 9], everyUs: 2.5 } }],
  })
  expect(of(ran, 'dispatch').map((line) => [line.atUs, line.items[0], line.actualTokens])).toEqual([
    [10, 'm0', 3],
    [12, 'm1', 9],
    [15, 'm2', 3],
    [17, 'm3', 9],
  ])
})

it('time: a trace’s times count from its event, extra columns are ignored, names count on', () => {
  const folder = temporaryFolder()
  writeFileSync(
    join(folder, 'lengths.csv'),
    'note,length,model,at_us\r\n"a, b",8,2,0\r\nx,16,1,7.5\r\n\r\n',
  )
  const ran = run(
    {
      config: { ...open, cleanupIdleMs: 0 },
      consumers: [gpu({ service: {} }), gpu({ name: 'gpu2', model: 2 })],
      events: [
        { atUs: 20, trace: 'lengths.csv' },
        { atUs: 1, submitMany: { count: 1, lengths: [8] } },
      ],
    },
    { folder },
  )
  expect(
    of(ran, 'dispatch').map(({ atUs, model, items, paddedLength }) => [
      atUs,
      model,
      items,
      paddedLength,
    ]),
  ).toEqual([
    [1, 1, ['m2'], 8],
    [20, 2, ['m0'], 8],
    [27, 1, ['m1'], 16],
  ])
})

it('time: a stream waits while the queue is full, and a flush of its job waits for it', () => {
  const ran = run({
    config: { maxQueuedItems: 4 },
    consumers: [gpu()],
    events: [
      { atUs: 0, submitMany: { count: 21, lengths: [8] } },
      { atUs: 1, flush: {} },
    ],
  })
  expect(of(ran, 'refuse')).toEqual([])
  expect(of(ran, 'gate')[0]).toMatchObject({ atUs: 0, reason: 'full' })
  expect(ran.summary).toMatchObject({ items: 21, left: 0, batches: 6 })
  const [last] = of(ran, 'dispatch').slice(-1)
  expect([last.items, last.cleanup]).toEqual([['m20'], true])
})

it('time: a stream that refuses tells each item that found no room, and its name is used up', () => {
  const ran = run({
    config: { maxQueuedItems: 4, releaseThreshold: 32 },
    consumers: [gpu()],
    events: [
      { atUs: 0, submitMany: { count: 6, lengths: [8], onFull: 'refuse' } },
      { atUs: 1, submitMany: { count: 1, lengths: [8] }, onFull: 'refuse', thenFlush: true },
    ],
  })
  expect(of(ran, 'refuse').map((line) => Object.values(line)[2])).toEqual(['m4', 'm5'])
  expect(of(ran, 'dispatch').map((line) => line.items)).toEqual([['m0', 'm1', 'm2', 'm3'], ['m6']])
})

it('time: the run ends when nothing more can happen, whatever is left', () => {
  const ran = run({
    config: { gateOpensOn: 'threshold', releaseThreshold: 1000 },
    consumers: [gpu()],
    events: [{ atUs: 3, submit: items('ab') }],
  })
  expect(ran.summary).toMatchObject({ items: 2, left: 2, batches: 0, makespanUs: 0 })
  expect(ran.summary.gate).toEqual({ heldUs: 0, reason: null })
})

it('time: the first consumers are there before a kill at time 0', () => {
  const ran = run({
    config: open,
    consumers: [gpu(), gpu({ name: 'gpu1' })],
    events: [
      { atUs: 0, submit: items('abcd') },
      { atUs: 0, kill: 'gpu0' },
    ],
  })
  expect(story(ran).slice(0, 3)).toEqual(['0 register', '0 register', '0 dead'])
  expect(of(ran, 'dispatch').map(({ consumer }) => consumer)).toEqual(['gpu1'])
})

it('time: a sum of decimals that falls short of a whole microsecond is that microsecond', () => {
  // 0.1 + 7 x 0.7 is 4.999999999999999 in floating point.
  const ran = run({
    config: { ...open, maxQueuedItems: 1 },
    events: [{ atUs: 0.1, submitMany: { count: 8, lengths: [8], everyUs: 0.7, onFull: 'refuse' } }],
  })
  expect(of(ran, 'refuse').map(({ atUs }) => atUs)).toEqual([0, 1, 2, 2, 3, 4, 5])
})

it.each([
  ['beyond what is exact', [{ atUs: 9_007_199_254_740, submit: items('a') }]],
  ['that adds up', [{ atUs: 0, submitMany: { count: 3, lengths: [8], everyUs: 8e12 } }]],
])('time: a run %s is refused in words', (_, events) => {
  expect(() => run({ consumers: [gpu()], events })).toThrow(/beyond 104 days/)
})

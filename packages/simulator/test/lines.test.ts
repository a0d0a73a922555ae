// Each line of the output, from the smallest scenario that brings it.
import { expect, it } from 'vitest'
import { gpu, items, of, run, story } from './run.js'

const open = { releaseThreshold: 1 }

it('simulate: a batch is dispatched, taken and settled after its service time, each told on a line', () => {
  const ran = run({
    config: open,
    consumers: [gpu()],
    events: [{ atUs: 5, submit: items('abcd', 7) }],
  })
  expect(ran.lines).toEqual([
    {
      type: 'register',
      atUs: 0,
      consumer: 'gpu0',
      contract: { batchSize: 4, tokens: 32, inputLength: 64, model: 1 },
    },
    { type: 'activate', atUs: 5, model: 1, paddedLength: 8 },
    { type: 'gate', atUs: 5, reason: 'threshold' },
    {
      type: 'dispatch',
      atUs: 5,
      batch: 1,
      consumer: 'gpu0',
      model: 1,
      items: ['a', 'b', 'c', 'd'],
      paddedLength: 8,
      actualTokens: 28,
      budgetTokens: 32,
      fill: 1,
      closedBy: 'token_limit',
      source: 'lane',
      sources: { reclaimed: 0, due: 0, disk: 0, lane: 4, staging: 0 },
      cleanup: false,
      normal: true,
      attempts: 1,
      group: null,
    },
    { type: 'taken', atUs: 5, batch: 1 },
    {
      type: 'settle',
      atUs: 137,
      batch: 1,
      consumer: 'gpu0',
      results: [
        ['a', 'completed'],
        ['b', 'completed'],
        ['c', 'completed'],
        ['d', 'completed'],
      ],
    },
  ])
})

it('simulate: every line begins with type and atUs', () => {
  const { lines } = run({ consumers: [gpu()], events: [{ atUs: 0, submit: items('ab') }] })
  for (const line of lines) expect(Object.keys(line).slice(0, 2)).toEqual(['type', 'atUs'])
})

it('simulate: what the flush leaves over goes in cleanup, which begins and ends on lines', () => {
  const ran = run({
    consumers: [gpu()],
    events: [
      { atUs: 0, submit: items('ab') },
      { atUs: 9, flush: {} },
    ],
  })
  expect(story(ran)).toEqual([
    '0 register',
    '9 gate',
    '9 cleanup',
    '9 dispatch',
    '9 cleanup',
    '9 taken',
    '125 settle',
  ])
  expect(of(ran, 'gate')[0].reason).toBe('flush')
  expect(of(ran, 'cleanup')).toMatchObject([
    { model: 1, state: 'begin' },
    { model: 1, state: 'end' },
  ])
  expect(of(ran, 'dispatch')[0]).toMatchObject({ cleanup: true, normal: false })
})

it('simulate: an id that came before is a duplicate, with another body it is refused', () => {
  const ran = run({
    consumers: [gpu()],
    events: [
      { atUs: 0, submit: items('a') },
      { atUs: 1, submit: [...items('a'), ...items('a', 9)] },
    ],
  })
  expect(of(ran, 'duplicate')).toEqual([{ type: 'duplicate', atUs: 1, item: 'a' }])
  expect(of(ran, 'refuse')).toEqual([
    { type: 'refuse', atUs: 1, item: 'a', code: 'FABRIC_ID_CONFLICT' },
  ])
})

it('simulate: ids are known within their job', () => {
  const ran = run({
    consumers: [gpu()],
    events: [
      { atUs: 0, submit: [...items('a', 8, { job: 'one' }), ...items('a', 8, { job: 'two' })] },
    ],
  })
  expect(of(ran, 'duplicate')).toEqual([])
  expect(ran.summary.items).toBe(2)
})

it('simulate: a submission is refused while the queue is full, and an item that is too large always', () => {
  const ran = run({
    config: { maxQueuedItems: 2, maxItemBytes: 64, releaseThreshold: 1000, gateMaxHoldMs: 0 },
    consumers: [gpu()],
    events: [{ atUs: 0, submit: [...items('x', 17), ...items('abc')] }],
  })
  expect(of(ran, 'refuse').map((line) => [Object.values(line)[2], line.code])).toEqual([
    ['x', 'FABRIC_TOO_LARGE'],
    ['c', 'FABRIC_QUEUE_FULL'],
  ])
})

it('simulate: a killed consumer is dead, its work reclaimed and given to the next that registers', () => {
  const ran = run({
    config: open,
    consumers: [gpu()],
    events: [
      { atUs: 0, submit: items('abcd') },
      { atUs: 50, kill: 'gpu0' },
      { atUs: 80, register: gpu({ name: 'gpu1' }) },
    ],
  })
  expect(of(ran, 'dead')).toEqual([
    { type: 'dead', atUs: 50, consumer: 'gpu0', cause: 'connection_closed' },
  ])
  expect(of(ran, 'reclaim')).toEqual([
    { type: 'reclaim', atUs: 50, consumer: 'gpu0', batches: [1], items: ['a', 'b', 'c', 'd'] },
  ])
  expect(of(ran, 'dispatch')[1]).toMatchObject({
    batch: 2,
    consumer: 'gpu1',
    source: 'reclaimed',
    attempts: 2,
    normal: false,
  })
  expect(ran.summary).toMatchObject({ items: 4, left: 0, settled: { completed: 4 } })
})

it('simulate: a stopped consumer dies by its lease; what it brings when it goes on is late', () => {
  const ran = run({
    config: { ...open, leaseTimeoutMs: 100 },
    consumers: [gpu(), gpu({ name: 'gpu1' })],
    events: [
      { atUs: 0, submit: items('abcd') },
      { atUs: 50, stop: 'gpu0' },
      { atUs: 200_000, cont: 'gpu0' },
    ],
  })
  expect(of(ran, 'dead')).toMatchObject([{ atUs: 100_000, cause: 'lease_timeout' }])
  expect(of(ran, 'settle')).toMatchObject([{ atUs: 100_132, consumer: 'gpu1' }])
  // 82 us of its work were left, and it registers anew.
  expect(of(ran, 'late')).toEqual(
    ['a', 'b', 'c', 'd'].map((item) => ({ type: 'late', atUs: 200_082, item })),
  )
  expect(of(ran, 'register').map(({ consumer }) => consumer)).toEqual(['gpu0', 'gpu1', 'gpu0'])
})

it('simulate: a consumer that goes on within its lease has lost nothing but time', () => {
  const ran = run({
    config: { ...open, leaseTimeoutMs: 100 },
    consumers: [gpu()],
    events: [
      { atUs: 0, submit: items('abcd') },
      { atUs: 50, stop: 'gpu0' },
      { atUs: 70_050, cont: 'gpu0' },
    ],
  })
  expect(of(ran, 'dead')).toEqual([])
  expect(of(ran, 'settle')).toMatchObject([{ atUs: 70_132 }])
})

it('simulate: a draining consumer finishes what it has taken and gets nothing new', () => {
  const ran = run({
    config: open,
    consumers: [gpu()],
    events: [
      { atUs: 0, submit: items('abcdefgh') },
      { atUs: 10, drain: 'gpu0' },
    ],
  })
  expect(of(ran, 'reclaim')).toMatchObject([{ batches: [2], items: ['e', 'f', 'g', 'h'] }])
  expect(of(ran, 'dead')).toEqual([])
  expect(ran.summary).toMatchObject({ left: 4, settled: { completed: 4 } })
})

it('simulate: a restart in memory mode loses what waits and what is leased, and its results are late', () => {
  const ran = run({
    config: open,
    consumers: [gpu()],
    events: [
      { atUs: 0, submit: items('abcdefghi') },
      { atUs: 10, restart: {} },
      { atUs: 20, submit: items('jklm') },
    ],
  })
  expect(of(ran, 'restart')).toEqual([{ type: 'restart', atUs: 10, lost: 9 }])
  expect(of(ran, 'register').map(({ atUs }) => atUs)).toEqual([0, 10])
  expect(of(ran, 'late').map(({ item }) => item)).toEqual(['a', 'b', 'c', 'd'])
  // Batch numbers go on, and the consumer takes the new batch when it has done with the old one.
  expect(of(ran, 'dispatch').map(({ batch }) => batch)).toEqual([1, 2, 3])
  expect(of(ran, 'taken')).toMatchObject([
    { atUs: 0, batch: 1 },
    { atUs: 132, batch: 3 },
  ])
  expect(ran.summary).toMatchObject({ items: 13, left: 9, settled: { completed: 4 } })
})

it('simulate: a poison item kills who takes it, at once, and a respawning consumer comes again', () => {
  const ran = run({
    config: open,
    consumers: [gpu({ respawnMs: 1 })],
    events: [{ atUs: 0, submit: items('abcd').map((one, i) => ({ ...one, poison: i === 1 })) }],
  })
  const first = (type: 'dead' | 'register') =>
    of(ran, type)
      .map(({ atUs }) => atUs)
      .slice(0, 3)
  expect(first('dead')).toEqual([0, 1000, 2000])
  expect(first('register')).toEqual([0, 1000, 2000])
  expect(ran.summary.left).toBe(0)
})

it.each([
  ['fail', ['failed', 'failed', 'failed', 'failed'], 1],
  ['retry', ['completed', 'completed', 'completed', 'completed'], 2],
  ['nack', ['completed', 'completed', 'completed', 'completed'], 2],
])('script: the nth batch ends as told: %s', (action, statuses, deliveries) => {
  const ran = run({
    config: { ...open, retryDelayMs: 1 },
    consumers: [gpu({ script: [{ nth: 1, do: action }] })],
    events: [{ atUs: 0, submit: items('abcd') }],
  })
  expect(of(ran, 'dispatch').length).toBe(deliveries)
  expect(of(ran, 'settle').flatMap(({ results }) => results.map(([, status]) => status))).toEqual(
    statuses,
  )
})

it('script: an item’s own line wins over that of its batch', () => {
  const ran = run({
    config: { ...open, maxAttempts: 2, retryDelayMs: 1 },
    consumers: [
      gpu({
        script: [
          { nth: 1, do: 'fail' },
          { item: 'b', do: 'retry' },
        ],
      }),
    ],
    events: [
      { atUs: 0, submit: items('abcd') },
      { atUs: 1, flush: {} },
    ],
  })
  expect(of(ran, 'settle').flatMap(({ results }) => results)).toEqual([
    ['a', 'failed'],
    ['c', 'failed'],
    ['d', 'failed'],
    ['b', 'failed'],
  ])
  expect(of(ran, 'dispatch').map(({ attempts }) => attempts)).toEqual([1, 2])
})

it('simulate: under the actual rule a consumer that names no layout takes the ragged one (S18)', () => {
  const batches = (over: object) =>
    of(
      run({
        config: { ...open, budgetRule: 'actual' },
        consumers: [gpu({ batchSize: 64, tokens: 40, ...over })],
        events: [
          { atUs: 0, submit: items('abcdefgh', 1) },
          { atUs: 1, flush: {} },
        ],
      }),
      'dispatch',
    ).map(({ items, fill }) => `${items.join('')} ${fill}`)
  expect(batches({})).toEqual(['abcdefgh 0.2'])
  // 1.25 x 40 padded tokens are six rows of 8.
  expect(batches({ layout: 'padded' })).toEqual(['abcdef 0.15', 'gh 0.05'])
})

it('simulate: lengthClasses and weights are those of the core (S20, S20a)', () => {
  const ran = run({
    config: { ...open, lengthClasses: [32] },
    consumers: [gpu({ batchSize: 6, tokens: 192 })],
    events: [
      { atUs: 0, createJob: { name: 'heavy', weight: 2 } },
      { atUs: 0, submit: items('abc', 32) },
      { atUs: 0, submit: items('xyz', 32, { job: 'heavy' }) },
    ],
  })
  expect(of(ran, 'activate')).toMatchObject([{ paddedLength: 32 }])
  expect(of(ran, 'dispatch')[0].items.join('')).toBe('axybzc')
})

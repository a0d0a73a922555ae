// The page of --html: whole in itself, bounded, and with what it should show.
import { expect, it } from 'vitest'
import { parseScenario, Recorder, renderPage, Simulation } from '../src/index.js'
import { Series } from '../src/page/series.js'
import { ticks } from '../src/page/svg.js'
import { Work } from '../src/page/work.js'
import { gpu, items, type Setting } from './run.js'

function page(scenario: Setting): string {
  const recorder = new Recorder()
  const simulation = new Simulation(parseScenario(JSON.stringify(scenario)), { observer: recorder })
  while (simulation.advance());
  return renderPage('a <b> & "c"', simulation.summary(), simulation.tally, recorder)
}

const small: Setting = {
  config: { releaseThreshold: 64 },
  consumers: [gpu(), gpu({ name: 'gpu <1>' })],
  events: [
    { atUs: 0, submitMany: { count: 200, lengths: [3, 9, 40, 22], everyUs: 7, thenFlush: true } },
    { atUs: 500, kill: 'gpu0' },
  ],
}

it('page: it asks the network for nothing and names are escaped', () => {
  const html = page(small)
  expect(html).not.toMatch(/https?:|@import|<link|src=|url\(/)
  expect(html).toContain('a &lt;b&gt; &amp; &quot;c&quot;')
  expect(html).toContain('gpu &lt;1&gt;')
  expect(html).not.toContain('gpu <1>')
})

it('page: queue, consumers, fill, padding, tail and summary are there, axes with their units', () => {
  const html = page(small)
  for (const title of ['Queue and gate', 'Consumers', 'Fill of', 'Padding of', 'tail', 'Summary']) {
    expect(html).toMatch(new RegExp(`<h2>[^<]*${title}`))
  }
  expect(html).toContain('gate opens: threshold')
  expect(html).toContain('time, ms')
  expect(html).toContain('waiting tokens')
  expect(html).toContain('broken off')
  expect(html).not.toMatch(/NaN|Infinity|undefined/)
})

it('page: a run without a single batch is drawn too', () => {
  const html = page({
    consumers: [gpu()],
    events: [{ atUs: 5, submit: items('a', 8, { model: 9 }) }],
  })
  expect(html).not.toMatch(/NaN|Infinity|undefined/)
})

it('page: it does not grow with the length of the run', () => {
  const many = (count: number) =>
    page({
      ...small,
      events: [{ atUs: 0, submitMany: { count, lengths: [3, 9, 40, 22], everyUs: 7 } }],
    }).length
  expect(many(80_000)).toBeLessThan(many(20_000) * 1.25)
})

it('page: time is kept in at most 640 buckets, and a level goes on until the next sample', () => {
  const series = new Series()
  const counts = (tokens: number) => () =>
    ({
      queue: Object.fromEntries(
        ['staging', 'lane', 'reclaimed', 'retrying', 'held'].map((tier) => [
          tier,
          { items: 0, tokens: tier === 'lane' ? tokens : 0 },
        ]),
      ),
      gate: { open: true },
      leased: 0,
    }) as never
  for (let us = 0; us < 10_000; us += 10) series.record(us * 1000, counts(us))
  series.noteCleanup(true)
  series.record(20_000_000, counts(7))
  const filled = series.filled(25_000_000)
  expect(filled.length).toBeLessThanOrEqual(640)
  expect(filled.at(-1)).toMatchObject({ laneTokens: 7, cleanup: true })
  expect(filled[Math.floor(15_000_000 / series.widthNs)]).toMatchObject({ laneTokens: 9990 })
})

it('page: work is kept whole while it is short, and merged without losing time when it is long', () => {
  const work = new Work()
  for (let i = 0; i < 5000; i++) work.add(i * 100, i * 100 + 60, i % 2 === 0 ? 8 : 64, true)
  expect(work.stretches.length).toBeLessThanOrEqual(900)
  expect(work.stretches.reduce((sum, one) => sum + one.busyNs, 0)).toBe(5000 * 60)
  expect(work.stretches.reduce((sum, one) => sum + one.batches, 0)).toBe(5000)
  expect(work.recent.at(-1)).toMatchObject({ from: 499_900, batches: 1 })
})

it.each([
  [10, 5, [0, 2, 4, 6, 8, 10]],
  [0.9, 4, [0, 0.5]],
  [0, 4, [0]],
])('page: ticks up to %d are round numbers', (most, count, expected) => {
  expect(ticks(most, count)).toEqual(expected)
})

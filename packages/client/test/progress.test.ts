// What is shown while a run goes on, by a clock and a terminal of the test's own.
import { describe, expect, it } from 'vitest'
import { count, duration, percent, short, table } from '../src/cli/format.js'
import { openProgress } from '../src/cli/progress.js'
import { RunStats } from '../src/cli/run-stats.js'
import { StateView } from '../src/cli/state-view.js'

function setUp({ hasTotal = true, show = true } = {}) {
  const stats = new RunStats()
  let nowMs = 0
  let text = ''
  const stream = {
    write: (more: string) => {
      text += more
    },
  }
  const progress = openProgress({ show, stats, model: 1, hasTotal, stream, now: () => nowMs })
  const tick = (ms: number, state: StateView | null) => {
    nowMs += ms
    progress.update(state)
  }
  return { stats, progress, tick, shown: () => text }
}

const state = (consumers: number, open = true) =>
  new StateView({
    gate: { open, progress: 0.25 },
    items: { waiting: 4096 },
    consumers: Array.from({ length: consumers }, () => ({ model: 1 })),
  })

function complete(stats: RunStats, items: number, tokens: number): void {
  stats.completed += items
  stats.submit = {
    ...stats.submit,
    accepted: stats.completed,
    tokens: stats.submit.tokens + tokens,
  }
}

describe('progress where there is no terminal', () => {
  it('is a line every few seconds, with rates of the last seconds and the time that is left', () => {
    const { stats, tick, shown } = setUp()
    stats.total = 10_000
    tick(1000, state(2))
    for (let second = 0; second < 20; second++) {
      complete(stats, second < 10 ? 100 : 200, 4000)
      tick(1000, state(2))
    }
    const lines = shown().trim().split('\n')
    expect(lines).toHaveLength(4)
    expect(lines[3]).toBe(
      'fabric: 2,800 of 10,000 items (28.0 %), 190 items/s, 38 s left; ' +
        '4.00k tokens/s, queue 4,096, gate open, 2 consumers',
    )
  })

  it('says that there is no consumer, that the gate is closed, that the broker is silent', () => {
    const { stats, tick, shown } = setUp({ hasTotal: false })
    tick(5000, state(0))
    tick(5000, state(1, false))
    stats.badLines = 3
    stats.waitingFor = 'the queue is full, waiting for room'
    tick(5000, state(1))
    stats.silentSinceMs = 17_000
    tick(5000, null)
    const lines = shown().trim().split('\n')
    expect(lines[0]).toMatch(
      /^fabric: 0 items, 0 items\/s; 0 tokens\/s, queue 4,096, no consumer for model 1$/,
    )
    expect(lines[1]).toMatch(/gate closed, 25\.0 % gathered, 1 consumer$/)
    expect(lines[2]).toMatch(
      /gate open, 1 consumer, 3 failed, the queue is full, waiting for room$/,
    )
    expect(lines[3]).toMatch(/broker unreachable, retrying for 3 s$/)
  })

  it('is nothing when not wanted, warnings apart', () => {
    const { tick, progress, shown } = setUp({ show: false })
    tick(60_000, state(1))
    progress.warn('fabric: line 1: no')
    expect(shown()).toBe('fabric: line 1: no\n')
  })
})

describe('numbers', () => {
  it('are written for people', () => {
    expect([1234567, 0].map(count)).toEqual(['1,234,567', '0'])
    expect([0, 9.44, 42.4, 999, 1000, 21_432, 117_174, 1.5e6].map(short)).toEqual([
      '0',
      '9.4',
      '42',
      '999',
      '1.00k',
      '21.4k',
      '117k',
      '1.50M',
    ])
    expect([0.4, 42, 89, 3600, 11_520].map(duration)).toEqual([
      '0.4 s',
      '42 s',
      '1 m 29 s',
      '1 h 0 m',
      '3 h 12 m',
    ])
    expect(percent(0.0214)).toBe('2.1 %')
    expect(
      table([
        ['job', 'items'],
        ['a', 1000],
        ['long', 7],
      ]),
    ).toBe('job   items\na     1,000\nlong      7')
  })
})

// The original's plain rules, each beside ours on the same scenario (scheduling.md, last table).
import { RULE_OPTIONS } from '@fabric/core'
import { expect, it } from 'vitest'
import { parseScenario } from '../src/index.js'
import { gpu, items, of, type Ran, run, type Setting } from './run.js'

const plain = (scenario: Setting): Ran => run(scenario, { asPublished: true })
const batches = (ran: Ran) =>
  of(ran, 'dispatch').map(({ consumer, items, cleanup }) =>
    [consumer, items.join(''), cleanup ? 'cleanup' : ''].filter((part) => part !== '').join(' '),
  )

it('as published: every option that has a plain value takes it, and the scenario’s own keys win', () => {
  const { rules } = parseScenario('{"config": {"cleanupIdleMs": 7}}', { asPublished: true })
  const published = Object.entries(RULE_OPTIONS).flatMap(([name, option]) => {
    const value = (option as { published?: unknown }).published
    return value === undefined || name === 'cleanupIdleMs' ? [] : [[name, value]]
  })
  expect(rules).toMatchObject({ ...Object.fromEntries(published), cleanupIdleMs: 7 })
  expect(parseScenario('{"config": {"asPublished": true}}').rules.readyRule).toBe('batch-size')
})

it('as published: a lane is ready at the batch size, though the budget has room for fewer', () => {
  const scenario = {
    config: { releaseThreshold: 8, cleanupIdleMs: 1 },
    consumers: [gpu({ tokens: 16 })],
    events: [
      { atUs: 0, submit: items('abc') },
      { atUs: 500, submit: items('d') },
    ],
  }
  expect(batches(run(scenario))).toEqual(['gpu0 ab', 'gpu0 cd'])
  expect(of(run(scenario), 'dispatch')[0].atUs).toBe(0)
  expect(of(plain(scenario), 'dispatch')[0].atUs).toBe(500)
})

it('as published: only the first waiting consumer’s batch size counts', () => {
  const scenario = {
    config: { releaseThreshold: 8, cleanupIdleMs: 1000 },
    consumers: [gpu({ batchSize: 8, tokens: 64 }), gpu({ name: 'gpu1', batchSize: 2 })],
    events: [{ atUs: 0, submit: items('ab') }],
  }
  expect(of(run(scenario), 'dispatch')[0]).toMatchObject({ atUs: 0, consumer: 'gpu1' })
  // The first in line wants 8: all wait for the cleanup.
  expect(of(plain(scenario), 'dispatch')[0]).toMatchObject({ atUs: 1_000_000, cleanup: true })
})

it('as published: the gate opens at the threshold and for no other reason', () => {
  const scenario = {
    config: { releaseThreshold: 1000 },
    consumers: [gpu()],
    events: [
      { atUs: 0, submit: items('ab') },
      { atUs: 9, flush: {} },
    ],
  }
  expect(run(scenario).summary).toMatchObject({ left: 0, gate: { reason: 'flush' } })
  expect(plain(scenario).summary).toMatchObject({ left: 2, gate: { reason: null } })
})

it('as published: cleanup begins as soon as nothing is ready and all channels are empty', () => {
  const scenario = {
    config: { releaseThreshold: 8 },
    consumers: [gpu()],
    events: [
      { atUs: 0, submit: items('a') },
      { atUs: 200, submit: items('b') },
    ],
  }
  // The gate opens with b, at twice the threshold.
  expect(of(run(scenario), 'cleanup').map(({ atUs }) => atUs)).toEqual([50_200, 50_200])
  expect(batches(run(scenario))).toEqual(['gpu0 ab cleanup'])
  expect(batches(plain(scenario))).toEqual(['gpu0 a cleanup', 'gpu0 b cleanup'])
})

it('as published: cleanup drains shape by shape', () => {
  const scenario = {
    config: { releaseThreshold: 8, cleanupIdleMs: 1 },
    consumers: [gpu()],
    events: [{ atUs: 0, submit: [...items('a', 8), ...items('b', 16)] }],
  }
  expect(batches(run(scenario))).toEqual(['gpu0 ba cleanup'])
  expect(batches(plain(scenario)).length).toBe(2)
})

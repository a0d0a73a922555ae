// S35 in disk mode: items that end while they are on disk, without having been read.

import { expect, it } from 'vitest'
import type { Effect } from '../src/effects.js'
import type { CoreEvent } from '../src/events.js'
import type { LoadedBlock } from '../src/submission.js'
import { Bench, block } from './helpers.js'

type Of<T extends Effect['type']> = Extract<Effect, { type: T }>

const MS = 1_000_000

/** Items of length 8 of model 1 on disk; `deadlineMs` counts from now. Answers their numbers. */
function keep(bench: Bench, ids: readonly string[], deadlineMs = 0, job = 0): Float64Array {
  const event = {
    type: 'admit',
    block: block(
      ids.map((id) => ({ id, length: 8 })),
      job,
    ),
  } as const
  const effects = bench.do(event)
  const { sequences } = effects.find(({ type }) => type === 'admitted') as Of<'admitted'>
  const count = ids.length
  bench.do({
    type: 'stored',
    items: {
      job,
      model: new Int32Array(count).fill(1),
      lengths: new Int32Array(count).fill(8),
      sequences,
      deadlineAt:
        deadlineMs === 0 ? null : new Float64Array(count).fill(bench.now + deadlineMs * MS),
      codes: new Uint8Array(count),
    },
  })
  return sequences
}

const diskBench = (over = {}) => new Bench({ mode: 'disk', budgetRule: 'padded', ...over })

function loaded(
  ids: readonly string[],
  sequences: readonly number[],
  deadlineAt?: number,
): CoreEvent {
  const items: LoadedBlock = {
    block: block(ids.map((id) => ({ id, length: 8 }))),
    sequences: Float64Array.from(sequences),
    acceptedAt: new Float64Array(ids.length),
    deadlineAt: deadlineAt === undefined ? null : new Float64Array(ids.length).fill(deadlineAt),
  }
  return { type: 'loaded', job: 0, model: 1, paddedLength: 8, items }
}

const cancel = (sequences: readonly number[]): CoreEvent => ({
  type: 'cancelOnDisk',
  job: 0,
  model: 1,
  paddedLength: 8,
  sequences,
  lengths: sequences.map(() => 8),
})

const ended = (bench: Bench) =>
  bench.of('endedOnDisk').flatMap(({ sequences, status }) => sequences.map((n) => [n, status]))

it('S35: an item on disk expires on time, while nobody serves it', () => {
  const bench = diskBench()
  const [first] = keep(bench, ['a'], 50)
  keep(bench, ['b'])
  bench.advance(49)
  expect(ended(bench)).toEqual([])
  bench.advance(1)
  expect(ended(bench)).toEqual([[first, 'expired']])
  expect(bench.core.counts()).toMatchObject({
    waiting: { items: 1, tokens: 8 },
    settled: { expired: 1 },
    queue: { disk: { items: 1, tokens: 8 } },
  })
})

it('S35: of deadlines on disk the earliest is first, whatever the order of arrival', () => {
  const bench = diskBench()
  const [late] = keep(bench, ['late'], 90)
  const [early] = keep(bench, ['early'], 30)
  bench.advance(100)
  expect(ended(bench)).toEqual([
    [early, 'expired'],
    [late, 'expired'],
  ])
})

it('S35: a deadline goes with its item into memory, and expires it there', () => {
  const bench = diskBench({ cleanupIdleMs: 1e6 })
  const [first] = keep(bench, ['a'], 50)
  bench.do({ type: 'readOut', job: 0 })
  bench.do(loaded(['a'], [first], 50 * MS))
  bench.advance(60)
  expect(ended(bench)).toEqual([])
  expect(bench.settled).toEqual(['a:expired'])
})

it('S35: a restart knows the deadlines of what is on disk; what is past expires at once', () => {
  const bench = diskBench()
  const shape = { model: 1, paddedLength: 8 }
  bench.do({
    type: 'restore',
    lastSequence: 9,
    jobs: [
      {
        job: 0,
        weight: 1,
        flushed: false,
        ended: false,
        settled: {},
        unreadResultBytes: 0,
        shapes: [{ ...shape, items: 2, tokens: 16 }],
        deadlines: [
          { ...shape, sequence: 3, length: 8, deadlineAt: 1 },
          { ...shape, sequence: 4, length: 8, deadlineAt: 70 * MS },
        ],
      },
    ],
  })
  bench.advance(1)
  expect(ended(bench)).toEqual([[3, 'expired']])
  bench.advance(70)
  expect(ended(bench).length).toBe(2)
  expect(bench.core.counts().waiting.items).toBe(0)
})

it('S35: items on disk are cancelled by their numbers, each once', () => {
  const bench = diskBench()
  const [a, b] = keep(bench, ['a', 'b', 'c'])
  bench.do(cancel([a, b]))
  bench.do(cancel([b]))
  expect(ended(bench)).toEqual([
    [a, 'cancelled'],
    [b, 'cancelled'],
  ])
  expect(bench.core.counts()).toMatchObject({ waiting: { items: 1 }, settled: { cancelled: 2 } })
})

it('S35: what a read under way brings of ended items is dropped', () => {
  const bench = diskBench({ cleanupIdleMs: 1e6 })
  const [a, b] = keep(bench, ['a', 'b'])
  bench.do({ type: 'readOut', job: 0 })
  bench.do(cancel([a]))
  bench.do(loaded(['a', 'b'], [a, b]))
  expect(bench.core.counts()).toMatchObject({
    waiting: { items: 1, tokens: 8 },
    window: { items: 1 },
    settled: { cancelled: 1 },
  })
})

it('S35: also when all of the shape had ended, and new items came', () => {
  const bench = diskBench({ cleanupIdleMs: 1e6 })
  const [a] = keep(bench, ['a'])
  bench.do(cancel([a]))
  const [b] = keep(bench, ['b'])
  bench.do({ type: 'readOut', job: 0 })
  bench.do(loaded(['a', 'b'], [a, b]))
  expect(bench.core.counts()).toMatchObject({ waiting: { items: 1 }, window: { items: 1 } })
})

it('S35: an item that has been read is not ended on disk', () => {
  const bench = diskBench({ cleanupIdleMs: 1e6 })
  const [a] = keep(bench, ['a', 'b'])
  bench.do({ type: 'readOut', job: 0 })
  bench.do(loaded(['a'], [a]))
  bench.do(cancel([a]))
  expect(ended(bench)).toEqual([])
  expect(bench.core.counts().waiting.items).toBe(2)
})

it('S35: a job on hold can be read out and cancelled; it ends then', () => {
  const bench = diskBench()
  const [a, b] = keep(bench, ['a', 'b'])
  bench.do({ type: 'flush', job: 0 })
  bench.do({ type: 'pauseJob', job: 0 })
  bench.do({ type: 'readOut', job: 0 })
  expect(bench.of('load')).toMatchObject([{ job: 0, model: 1, paddedLength: 8 }])
  bench.do(loaded(['a', 'b'], [a, b]))
  bench.cancel(['a', 'b'])
  expect(bench.settled).toEqual(['a:cancelled', 'b:cancelled'])
  expect(bench.of('jobEnded').length).toBe(1)
})

it('S36: a deleted job takes its deadlines on disk with it', () => {
  const bench = diskBench()
  bench.do({ type: 'createJob', job: 5 })
  keep(bench, ['a'], 50, 5)
  bench.do({ type: 'deleteJob', job: 5 })
  bench.advance(100)
  expect(ended(bench)).toEqual([])
  expect(bench.core.counts()).toMatchObject({ waiting: { items: 0 }, settled: { cancelled: 1 } })
})

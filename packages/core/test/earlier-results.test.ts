// S26 in disk mode: a result of an earlier life settles its item if that is unsettled, wherever it is.
import { describe, expect, it } from 'vitest'
import type { EarlierResult } from '../src/events.js'
import { DiskBench } from './disk-bench.js'

const result = (sequence: number, over: Partial<EarlierResult> = {}): EarlierResult => ({
  job: 0,
  model: 1,
  paddedLength: 8,
  length: 8,
  sequence,
  index: sequence - 1,
  status: 'completed',
  ...over,
})

const bring = (bench: DiskBench, items: EarlierResult[], unknown: number[] = []) =>
  bench.do({ type: 'earlierResults', consumer: 1, batch: 99, items, unknown })

const endedOnDisk = (bench: DiskBench) =>
  bench.of('endedOnDisk').map(({ sequences, status }) => [...sequences, status])

const lateOf = (bench: DiskBench) => bench.of('late').flatMap(({ index }) => [...index])

/** Nothing leaves by itself. */
const quiet = (over = {}) => new DiskBench({ maxWaitMs: 0, cleanupIdleMs: 1_000_000, ...over })

describe('the item', () => {
  it('is on disk alone: it ends there, and a read that is under way brings it no more', () => {
    const bench = quiet()
    bench.keep([8, 8])
    bench.slow = true
    bench.do({ type: 'readOut', job: 0 })
    bring(bench, [result(1), result(2, { status: 'failed' })])
    bench.answerLoads()
    expect(endedOnDisk(bench)).toEqual([
      [1, 'completed'],
      [2, 'failed'],
    ])
    const { settled, waiting, window } = bench.core.counts()
    expect(settled).toMatchObject({ completed: 1, failed: 1 })
    expect([waiting.items, window.items]).toEqual([0, 0])
  })

  it('is in the window: it is told by its place in the batch of then', () => {
    const bench = quiet()
    bench.keep([8, 8])
    bench.do({ type: 'readOut', job: 0 })
    bench.dispatch()
    bring(bench, [result(2, { index: 5 })])
    expect(bench.settled).toEqual(['i1:completed'])
    expect(bench.of('settle')).toMatchObject([{ batch: 99, index: Uint32Array.of(5) }])
    expect(bench.core.counts().waiting.items).toBe(1)
  })

  it('is leased anew: that batch goes on, and its result for the item is late', () => {
    const bench = quiet()
    bench.keep([8, 8])
    bench.do({ type: 'flush', job: 0 })
    bench.register(1)
    bring(bench, [result(1)])
    expect(bench.settled).toEqual(['i0:completed'])
    bench.completeAll()
    expect(bench.settled).toEqual(['i0:completed', 'i1:completed'])
    expect(lateOf(bench)).toEqual([0])
    expect(bench.of('jobEnded')).toHaveLength(1)
  })

  it('has ended, or is named twice, or was found nowhere: the result is dropped and counted', () => {
    const bench = quiet()
    bench.keep([8, 8])
    bring(bench, [result(1), result(1, { index: 7 })], [6])
    bring(bench, [result(1)])
    expect(lateOf(bench)).toEqual([6, 7, 0])
    expect(bench.core.counts()).toMatchObject({ lateResults: 3, settled: { completed: 1 } })
  })

  it('is of a job that is gone: nothing happens', () => {
    const bench = quiet()
    bench.createJob(3)
    bench.keep([8], 3)
    bench.do({ type: 'deleteJob', job: 3 })
    bring(bench, [result(1, { job: 3 })])
    expect(lateOf(bench)).toEqual([0])
  })
})

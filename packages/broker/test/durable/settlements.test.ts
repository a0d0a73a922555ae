// Results on their way to a disk that takes them slowly, or not at all for a while.
import type { CoreEvent } from '@fabric/core'
import { expect, test } from 'vitest'
import type { DurableHost } from '../../src/durable/host.ts'
import { SETTLE_BYTES_MAX, Settlements } from '../../src/durable/settlements.ts'
import { Job } from '../../src/jobs.ts'
import { DiskResults } from '../../src/results/disk-results.ts'
import type { SettledItem, Store } from '../../src/storage/store.ts'
import { until } from '../support/until.ts'

class Bench {
  readonly handed: { items: readonly SettledItem[]; done: () => void }[] = []
  readonly holds: boolean[] = []
  readonly ended: Job[] = []
  readonly job: Job
  readonly settlements: Settlements

  constructor() {
    const store = {
      settle: (items: readonly SettledItem[]) =>
        new Promise<Uint8Array>((resolve) => {
          this.handed.push({ items, done: () => resolve(new Uint8Array(items.length).fill(1)) })
        }),
    } as unknown as Store
    this.job = new Job(1, 'j', null, 1, null, new DiskResults(store, 1))
    const host = {
      store,
      run: (_: CoreEvent) => {},
      hold: (waits: boolean) => this.holds.push(waits),
    } as unknown as DurableHost
    this.settlements = new Settlements(host, (job) => this.ended.push(job))
  }

  add(sequence: number, value: Uint8Array): void {
    const id = new Uint8Array(1)
    const record = {
      status: 'completed' as const,
      attempts: 1,
      truncatedTo: 0,
      encoding: 1,
      id,
      value,
    }
    this.settlements.add(this.job, sequence, { model: 0, paddedLength: 8 }, record)
    this.settlements.flush()
  }
}

test('beyond what may be under way they wait as copies, no batch goes out, and all go on with the disk', async () => {
  const bench = new Bench()
  bench.add(1, new Uint8Array(SETTLE_BYTES_MAX))
  expect(bench.holds).toEqual([true])
  const borrowed = Uint8Array.of(7)
  bench.add(2, borrowed)
  bench.add(3, Uint8Array.of(8))
  borrowed[0] = 99
  expect(bench.handed).toHaveLength(1)
  bench.settlements.end(bench.job)
  bench.handed[0].done()
  await until(() => bench.handed.length === 3)
  expect(
    bench.handed.slice(1).map(({ items }) => [items[0].sequence, items[0].record.value[0]]),
  ).toEqual([
    [2, 7],
    [3, 8],
  ])
  expect(bench.holds.at(-1)).toBe(false)
  expect(bench.ended).toEqual([])
  for (const { done } of bench.handed.slice(1)) done()
  await until(() => bench.ended.length === 1)
  expect(bench.job.settled.completed).toBe(3)
  expect(bench.settlements.isIdle).toBe(true)
})

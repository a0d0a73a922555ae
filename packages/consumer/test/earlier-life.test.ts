// S26, consumer and broker together: work that was in hand when the broker was started anew counts.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Consumer } from '@fabric/consumer'
import { expect, onTestFinished, test } from 'vitest'
import { RealBroker } from './support/broker.js'
import { gate } from './support/changes.js'

const CONTRACT = { batchSize: 8, tokens: 512, inputLength: 64, model: 1 }

test.each(['ring', 'socket'] as const)(
  'a batch that came by the %s before a restart in disk mode is worked on once',
  async (transport) => {
    const folder = mkdtempSync(join(tmpdir(), 'earlier-life-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const disk = { dataDir: join(folder, 'data'), drainTimeoutMs: 0 }
    const first = await RealBroker.start(disk)
    const consumer = new Consumer({ broker: first.address, transport, ...CONTRACT })
    onTestFinished(() => consumer.drain())
    const begun = gate()
    const done = gate()
    const worked: string[] = []
    void consumer.run(async (batch) => {
      worked.push(...batch.itemIds)
      begun.open()
      await done.promise
      return batch.itemIds
    })
    const items = Array.from({ length: 8 }, (_, i) => ({ id: `i${i}`, tokens: [i, i] }))
    await first.submit('job', items)
    await begun.promise
    const settled = new Promise((resolve) => consumer.once('settled', resolve))
    await first.stop()
    // While there is no broker: else the items might be given out anew before their results come.
    done.open()
    await settled
    const again = await RealBroker.start(disk, first.socketPath)
    const results = await again.results('job')
    expect([...results.values()].map(({ id, result }) => [id, result])).toEqual(
      items.map(({ id }) => [id, id]),
    )
    expect(new Set(worked).size).toBe(8)
  },
)

// A consumer that a program runs on a worker thread of its own.
import { Worker } from 'node:worker_threads'
import { expect, onTestFinished, test } from 'vitest'
import { json, StubBroker } from './support/stub-broker.js'

const SCRIPT = new URL('fixtures/worker-consumer.mjs', import.meta.url)

test.each(['ring', 'socket'] as const)(
  'worker: serves by the %s, and a terminated worker takes its connection with it and nothing else',
  async (transport) => {
    const broker = await StubBroker.start({ transport })
    onTestFinished(() => broker.dispose())
    for (const round of [0, 1]) {
      const worker = new Worker(SCRIPT, { workerData: broker.address })
      const connection = await broker.registered(round)
      connection.send({ batch: 1, items: [{ tokens: [1] }] })
      expect(json((await connection.outcomes(1, 1)).get(0)!)).toBe('item-0')
      await worker.terminate()
      await connection.until(() => connection.isClosed)
      expect(connection.hasSaidBye).toBe(false)
    }
  },
)

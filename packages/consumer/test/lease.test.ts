// Renewals of a process whose handler blocks, and what a broker sees when such a process dies.
import { fileURLToPath } from 'node:url'
import { encodeError } from '@fabric/protocol'
import { expect, onTestFinished, test } from 'vitest'
import { lossOf } from '../src/connection/loss.js'
import { Process } from './support/process.js'
import { json, StubBroker } from './support/stub-broker.js'

const SCRIPT = fileURLToPath(new URL('fixtures/blocking-consumer.mjs', import.meta.url))
const ONE = [{ tokens: [1, 2] }]

async function startBlocked() {
  const broker = await StubBroker.start({ transport: 'ring', renewEveryMs: 5 })
  onTestFinished(() => broker.dispose())
  const consumer = new Process(SCRIPT, [broker.address])
  const connection = await broker.registered()
  connection.send({ batch: 1, items: ONE })
  await consumer.said('blocked in batch 1')
  return { broker, consumer, connection }
}

test('lease: renewals go on while the handler blocks its thread, and its results arrive', async () => {
  const { consumer, connection } = await startBlocked()
  const before = connection.renewals
  await connection.until(() => connection.renewals >= before + 100)
  expect(connection.results).toEqual([])
  consumer.write('\n')
  expect(json((await connection.outcomes(1, 1)).get(0)!)).toBe('item-0')
  expect(connection.taken).toEqual([1])
})

test('lease: renewals begin at registration, before any batch', async () => {
  const broker = await StubBroker.start({ renewEveryMs: 5 })
  onTestFinished(() => broker.dispose())
  new Process(SCRIPT, [broker.address])
  const connection = await broker.registered()
  await connection.until(() => connection.renewals >= 3)
})

test('lease: SIGTERM while the handler blocks drains after it, with exit code 0', async () => {
  const { consumer, connection } = await startBlocked()
  consumer.kill('SIGTERM')
  connection.send({ batch: 2, items: ONE })
  const before = connection.renewals
  await connection.until(() => connection.renewals >= before + 20)
  consumer.write('\n')
  await connection.outcomes(1, 1)
  // Whether batch 2 was taken before the signal could be heard is open; it then blocks as well.
  consumer.write('\n')
  expect(await consumer.exited()).toBe(0)
  expect(consumer.output).toContain('drained')
  expect(connection.hasSaidBye).toBe(true)
})

test('lease: a process that is killed is seen by its connection at once', async () => {
  const { broker, consumer, connection } = await startBlocked()
  consumer.kill('SIGKILL')
  await connection.until(() => connection.isClosed)
  expect(connection.hasSaidBye).toBe(false)
  const next = new Process(SCRIPT, [broker.address])
  const second = await broker.registered(1)
  second.send({ batch: 2, items: ONE })
  await next.said('blocked in batch 2')
  next.write('\n')
  await second.outcomes(2, 1)
})

const EXPIRED = {
  code: 'FABRIC_LEASE_EXPIRED',
  message: 'no renewal within leaseTimeoutMs',
} as const

test.each(['ring', 'socket'] as const)(
  'lease: a process stopped past its lease says so when it goes on, and registers anew (%s)',
  async (transport) => {
    const broker = await StubBroker.start({ transport, renewEveryMs: 5 })
    onTestFinished(() => broker.dispose())
    const consumer = new Process(SCRIPT, [broker.address])
    const first = await broker.registered()
    await first.until(() => first.renewals >= 3)
    consumer.kill('SIGSTOP')
    first.sendFrame(encodeError(EXPIRED))
    first.close()
    consumer.kill('SIGCONT')
    await consumer.said('disconnected: FABRIC_LEASE_EXPIRED')
    const second = await broker.registered(1)
    second.send({ batch: 1, items: ONE })
    await consumer.said('blocked in batch 1')
    consumer.write('\n')
    await second.outcomes(1, 1)
  },
)

test('lease: a loss without a word is the lease’s when nothing was renewed for that long', () => {
  expect(lossOf('write EPIPE', 29_999, 30_000)).toEqual({
    code: 'FABRIC_CONNECTION_LOST',
    message: 'write EPIPE',
  })
  expect(lossOf('write EPIPE', 30_000, 30_000)).toEqual({
    code: 'FABRIC_LEASE_EXPIRED',
    message:
      'nothing was renewed for 30000 ms, over the lease of 30000 ms: this process did not run (write EPIPE)',
  })
})

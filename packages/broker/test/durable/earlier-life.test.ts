// S26 in disk mode: what a consumer finished for an earlier life of the broker is not done again.
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { items, type TestBroker, temporaryFolder, testBroker } from '../support/broker.ts'
import { type FakeBatch, FakeConsumer } from '../support/fake-consumer.ts'

const LAYOUT = { contract: { layout: 'padded' as const } }

/** A batch of 8 that a consumer has taken when its broker ends. */
async function takenBatch(broker: TestBroker): Promise<FakeBatch> {
  const consumer = await FakeConsumer.connect(broker.socketPath, LAYOUT)
  const batch = await consumer.nextBatch()
  consumer.take(batch)
  return batch
}

const lines = (text: string) =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))

test('a result of an item that still waits on disk ends it', async () => {
  const dataDir = join(temporaryFolder(), 'data')
  const first = await testBroker({ dataDir })
  await first.post('/v1/jobs', { id: 'j' })
  await first.post('/v1/items?job=j', items(8))
  await first.post('/v1/jobs/j/flush')
  const batch = await takenBatch(first)
  await first.post('/v1/jobs/j/pause')
  await first.stop()

  const broker = await testBroker({ dataDir })
  const consumer = await FakeConsumer.connect(broker.socketPath, LAYOUT)
  expect(consumer.welcome.earlierResults).toBe(true)
  consumer.settleEarlier(batch)
  const { text } = await broker.get('/v1/jobs/j/results?follow=true')
  expect(lines(text).map(({ id, status }) => `${id} ${status}`)).toEqual(
    items(8).map(({ id }) => `${id} completed`),
  )
  expect(lines(text)[0]).toMatchObject({ result: [8], attempts: 1 })
  expect((await broker.get('/v1/jobs/j')).body).toMatchObject({ state: 'ended', waiting: 0 })
  expect(broker.state().batches.count).toBe(0)
  expect(broker.state().items).toMatchObject({ late: 0, settled: { completed: 8 } })
})

test('an item that was given out anew ends by the first result of it, and has one', async () => {
  const dataDir = join(temporaryFolder(), 'data')
  const first = await testBroker({ dataDir })
  await first.post('/v1/jobs', { id: 'j' })
  await first.post('/v1/items?job=j', items(8))
  await first.post('/v1/jobs/j/flush')
  const batch = await takenBatch(first)
  await first.stop()

  const broker = await testBroker({ dataDir })
  const other = await FakeConsumer.connect(broker.socketPath, LAYOUT)
  const again = await other.nextBatch()
  other.take(again)
  const consumer = await FakeConsumer.connect(broker.socketPath, LAYOUT)
  consumer.settleEarlier(batch)
  await broker.untilState((state) => state.items.settled.completed === 8)
  other.settle(again)
  consumer.settleEarlier(batch)
  await broker.untilState((state) => state.items.late === 16)
  const { text } = await broker.get('/v1/jobs/j/results?follow=true')
  expect(lines(text)).toHaveLength(8)
})

test('a result is of no item of another body, whatever its id', async () => {
  const dataDir = join(temporaryFolder(), 'data')
  const first = await testBroker({ dataDir })
  await first.post('/v1/jobs', { id: 'j' })
  await first.post('/v1/items?job=j', items(8))
  const batch = await takenBatch(first)
  for (let i = 0; i < 2; i++) await fetch(`${first.httpUrl}/v1/jobs/j`, { method: 'DELETE' })
  await first.stop()

  const broker = await testBroker({ dataDir })
  await broker.post('/v1/jobs', { id: 'k' })
  await broker.post('/v1/jobs/k/pause')
  const others = items(8).map(({ id, tokens }) => ({ id, tokens: tokens.map((t) => t + 1) }))
  expect((await broker.post('/v1/items?job=k', others)).body.accepted).toBe(8)
  const consumer = await FakeConsumer.connect(broker.socketPath, LAYOUT)
  consumer.settleEarlier(batch)
  await broker.untilState((state) => state.items.late === 8)
  expect(broker.state().items).toMatchObject({ waiting: 8, settled: { completed: 0 } })
})

test('memory mode takes none', async () => {
  const first = await testBroker()
  await first.post('/v1/items', items(8))
  const batch = await takenBatch(first)
  await first.stop()
  const broker = await testBroker()
  const consumer = await FakeConsumer.connect(broker.socketPath, LAYOUT)
  expect(consumer.welcome.earlierResults).toBe(false)
  consumer.settleEarlier(batch)
  await broker.untilState((state) => state.items.late === 8)
  expect(broker.log.some(({ code }) => code === 'FABRIC_LEASE_UNKNOWN')).toBe(true)
})

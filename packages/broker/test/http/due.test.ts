import { join } from 'node:path'
import { expect, test } from 'vitest'
import { items, temporaryFolder, testBroker } from '../support/broker.ts'
import { FakeConsumer } from '../support/fake-consumer.ts'

const BULK = 100_000
const CONTRACT = { batchSize: 500, tokens: 4000, inputLength: 64, model: 0 }

const lines = (count: number, job: string) =>
  Array.from({ length: count }, (_, i) =>
    JSON.stringify({ id: `b${i}`, tokens: [1, 2, 3], job }),
  ).join('\n')

test('S16: an item with maxWaitMs is answered while a bulk job of its shape goes on', async () => {
  const broker = await testBroker({ maxItemsPerRequest: BULK })
  await broker.post('/v1/jobs', { id: 'bulk', model: 0 })
  const sent = await broker.post('/v1/items', lines(BULK, 'bulk'), 'application/x-ndjson')
  expect(sent.body.accepted).toBe(BULK)
  const quick = { id: 'quick', tokens: [1, 2, 3], job: 'bulk', maxWaitMs: 20 }
  expect((await broker.post('/v1/items', [quick])).body.accepted).toBe(1)
  const consumer = await FakeConsumer.connect(broker.socketPath, { contract: CONTRACT })
  let items = 0
  for (let isDone = false; !isDone; ) {
    const batch = await consumer.nextBatch()
    consumer.take(batch)
    items += batch.ids.length
    isDone = batch.ids.includes('quick')
    consumer.settle(batch)
    batch.release()
  }
  expect(items).toBeLessThan(BULK)
  const { text } = await broker.get('/metrics')
  expect(text).toMatch(/batch_source_total\{source="due"\} 1/)
})

test('S16: a durable item with maxWaitMs leaves on time, whatever waits on disk before it', async () => {
  const dataDir = join(temporaryFolder(), 'data')
  const broker = await testBroker({ dataDir, maxWaitMs: 0, cleanupIdleMs: 600_000 })
  await broker.post('/v1/items', items(3))
  const consumer = await FakeConsumer.connect(broker.socketPath, { contract: CONTRACT })
  const quick = { id: 'quick', tokens: [1, 2, 3], maxWaitMs: 20 }
  expect((await broker.post('/v1/items', [quick])).body.accepted).toBe(1)
  const { ids } = await consumer.nextBatch()
  expect(ids).toEqual(['quick'])
  await broker.stop()

  const again = await testBroker({ dataDir, maxWaitMs: 0 })
  expect(again.state().queue.disk.items).toBe(4)
  expect((await again.post('/v1/items', [quick])).body.duplicate).toBe(1)
  const next = await FakeConsumer.connect(again.socketPath, { contract: CONTRACT })
  await again.post('/v1/jobs/default/flush')
  await next.work(() => again.state().items.settled.completed === 4)
})

test('a wait that is none is refused, with its field', async () => {
  const broker = await testBroker()
  const { body } = await broker.post('/v1/items', [{ id: 'a', tokens: [1], maxWaitMs: 0 }])
  expect(body.error).toMatchObject({ code: 'FABRIC_ITEM_MALFORMED', field: 'items[0].maxWaitMs' })
  const job = await broker.post('/v1/jobs', { id: 'j', maxWaitMs: -1 })
  expect(job.body.error).toMatchObject({ code: 'FABRIC_BAD_REQUEST', field: 'maxWaitMs' })
  expect((await broker.post('/v1/jobs', { id: 'k', maxWaitMs: 5 })).body.maxWaitMs).toBe(5)
  expect((await broker.post('/v1/jobs', { id: 'k', maxWaitMs: 6 })).status).toBe(409)
})

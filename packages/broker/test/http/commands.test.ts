// S35 over HTTP: deadlines, cancel, pause, drain, and why an item waits.
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openStore } from '../../src/storage/open.ts'
import { items, type TestBroker, temporaryFolder, testBroker } from '../support/broker.ts'
import { spawnConsumer } from '../support/processes.ts'
import { until } from '../support/until.ts'

async function remove(broker: TestBroker, path: string) {
  const response = await fetch(broker.httpUrl + path, { method: 'DELETE' })
  const text = await response.text()
  return { status: response.status, body: text === '' ? null : JSON.parse(text) }
}

const results = async (broker: TestBroker, job: string) =>
  (await broker.get(`/v1/jobs/${job}/results`)).text
    .trim()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))

test('an item with a deadline expires while nobody serves it', async () => {
  const broker = await testBroker()
  const answer = await broker.post('/v1/items', [{ id: 'a', tokens: [1], deadlineMs: 20 }])
  expect(answer.body.accepted).toBe(1)
  const [line] = await until(async () => {
    const lines = await results(broker, 'default')
    return lines.length > 0 ? lines : null
  })
  expect(line).toMatchObject({
    id: 'a',
    status: 'expired',
    error: { code: 'FABRIC_DEADLINE_PASSED' },
  })
})

test('a deadline that is none is refused, with its field', async () => {
  const broker = await testBroker()
  for (const deadlineMs of [0, -1, 1.5, '5']) {
    const { body } = await broker.post('/v1/items', [{ id: 'a', tokens: [1], deadlineMs }])
    expect(body.error).toMatchObject({
      code: 'FABRIC_ITEM_MALFORMED',
      field: 'items[0].deadlineMs',
    })
  }
})

test('GET /v1/items/{id} says why an item waits, and DELETE cancels it', async () => {
  const broker = await testBroker()
  await broker.post('/v1/items', items(3))
  const { body } = await broker.get('/v1/items/a0')
  expect(body).toMatchObject({ id: 'a0', job: 'default', why: 'no consumer for model 0' })
  expect(await remove(broker, '/v1/items/a0')).toEqual({ status: 200, body: { cancelled: ['a0'] } })
  expect((await remove(broker, '/v1/items/a0')).status).toBe(404)
  expect((await broker.get('/v1/items/a0')).status).toBe(404)
  const cancel = await broker.post('/v1/items/cancel', { ids: ['a1', 'unknown'] })
  expect(cancel.body).toEqual({ cancelled: ['a1'] })
  expect((await broker.post('/v1/items/cancel', { ids: 'a1' })).status).toBe(400)
})

test('a job that is cancelled ends at once; its results say so; it takes no more', async () => {
  const broker = await testBroker()
  await broker.post('/v1/jobs', { id: 'j' })
  await broker.post('/v1/items?job=j', items(5))
  const { status, body } = await remove(broker, '/v1/jobs/j')
  expect([status, body.state, body.settled.cancelled]).toEqual([200, 'cancelled', 5])
  expect((await results(broker, 'j')).map(({ status }) => status)).toEqual(
    Array(5).fill('cancelled'),
  )
  const more = await broker.post('/v1/items?job=j', [{ id: 'later', tokens: [1] }])
  expect([more.status, more.body.error.code]).toEqual([409, 'FABRIC_JOB_CANCELLED'])
  expect((await remove(broker, '/v1/jobs/j')).status).toBe(204)
  expect((await broker.get('/v1/jobs/j')).status).toBe(404)
})

test('DELETE of a job that takes long to cancel answers 202, and goes on', async () => {
  const faults = new Int32Array(new SharedArrayBuffer(8))
  const broker = await testBroker(
    { dataDir: join(temporaryFolder(), 'data') },
    { openStore: (dataDir, options) => openStore(dataDir, { ...options, faults }) },
  )
  await broker.post('/v1/jobs', { id: 'j' })
  await broker.post('/v1/items?job=j', items(5))
  Atomics.store(faults, 1, 1500)
  const { status, body } = await remove(broker, '/v1/jobs/j')
  expect([status, body.id]).toEqual([202, 'j'])
  expect((await broker.post('/v1/items?job=j', [{ id: 'later', tokens: [1] }])).status).toBe(409)
  Atomics.store(faults, 1, 0)
  await until(async () => (await broker.get('/v1/jobs/j')).body.state === 'cancelled')
  expect((await broker.get('/v1/jobs/j')).body.settled.cancelled).toBe(5)
})

test('a paused job waits until it is resumed', async () => {
  const broker = await testBroker()
  await broker.post('/v1/jobs', { id: 'j' })
  expect((await broker.post('/v1/jobs/j/pause')).body.paused).toBe(true)
  spawnConsumer(broker.socketPath)
  await broker.untilState((state) => state.consumers.length === 1)
  await broker.post('/v1/items?job=j', items(20))
  await broker.post('/v1/jobs/j/flush')
  expect((await broker.get('/v1/items/a0?job=j')).body.why).toBe('paused')
  await broker.post('/v1/jobs/j/resume')
  await until(async () => (await broker.get('/v1/jobs/j')).body.settled.completed === 20)
})

test('an operator drains a consumer: it finishes, is told so, and is gone', async () => {
  const broker = await testBroker()
  const consumer = spawnConsumer(broker.socketPath, { mode: 'hold' })
  await broker.untilState((state) => state.consumers.length === 1)
  await broker.post('/v1/items', items(24))
  await until(() => consumer.output.includes('taken'))
  expect((await broker.post('/v1/consumers/nobody/drain')).status).toBe(404)
  expect((await broker.post('/v1/consumers/gpu0/drain')).status).toBe(202)
  expect(broker.state().items.leased).toBe(8)
  consumer.child.stdin!.write('go\n')
  await consumer.exited
  expect(broker.state().items).toMatchObject({ waiting: 16, settled: { completed: 8 } })
})

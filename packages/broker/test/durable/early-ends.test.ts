// S35 in disk mode, through HTTP and a real store: deadlines, cancel and explain of items on disk.
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { items, type TestBroker, temporaryFolder, testBroker } from '../support/broker.ts'
import { FakeConsumer } from '../support/fake-consumer.ts'
import { until } from '../support/until.ts'

const newDir = () => join(temporaryFolder(), 'data')

const results = async (broker: TestBroker, job: string) =>
  (await broker.get(`/v1/jobs/${job}/results?follow=true`)).text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))

const remove = (broker: TestBroker, path: string) =>
  fetch(`${broker.httpUrl}${path}`, { method: 'DELETE' })

describe('deadlines on disk', () => {
  test('S35: a durable item expires while it is on disk, and its result says so', async () => {
    const broker = await testBroker({ dataDir: newDir() })
    await broker.post('/v1/jobs', { id: 'j' })
    const [late, other] = items(2)
    const answer = await broker.post('/v1/items?job=j', [{ ...late, deadlineMs: 30 }, other])
    expect(answer.body).toMatchObject({ accepted: 2 })
    await until(() => broker.state().items.settled.expired === 1)
    const consumer = await FakeConsumer.connect(broker.socketPath)
    await broker.post('/v1/jobs/j/flush')
    await consumer.work(() => broker.state().items.settled.completed === 1)
    expect(await results(broker, 'j')).toMatchObject([
      { id: late.id, status: 'expired', error: { code: 'FABRIC_DEADLINE_PASSED' } },
      { id: other.id, status: 'completed' },
    ])
    expect((await broker.get('/v1/jobs/j')).body).toMatchObject({
      state: 'ended',
      settled: { completed: 1, expired: 1 },
    })
  })

  test('S35: a deadline outlives the broker; one that passed meanwhile expires at the start', async () => {
    const dataDir = newDir()
    const first = await testBroker({ dataDir })
    await first.post('/v1/jobs', { id: 'j' })
    const [soon, later, other] = items(3)
    await first.post('/v1/items?job=j', [
      { ...soon, deadlineMs: 250 },
      { ...later, deadlineMs: 600_000 },
      other,
    ])
    await first.stop()
    expect(first.state().items.settled.expired).toBe(0)
    const broker = await testBroker({ dataDir })
    await until(() => broker.state().items.settled.expired === 1)
    const { body } = await broker.get(`/v1/items/${later.id}?job=j`)
    expect(body.expiresInMs).toBeGreaterThan(0)
    expect(body.expiresInMs).toBeLessThanOrEqual(600_000)
    expect(broker.state().items.waiting).toBe(2)
  })
})

describe('cancel on disk', () => {
  test('S35: items on disk are cancelled by id, each once, and it outlives the broker', async () => {
    const dataDir = newDir()
    const first = await testBroker({ dataDir })
    await first.post('/v1/jobs', { id: 'j' })
    await first.post('/v1/items?job=j', items(10))
    const ids = items(10).map(({ id }) => id)
    const answer = await first.post('/v1/items/cancel', {
      job: 'j',
      ids: [...ids.slice(0, 4), 'x'],
    })
    expect(answer.body.cancelled.sort()).toEqual(ids.slice(0, 4).sort())
    expect((await remove(first, `/v1/items/${ids[0]}?job=j`)).status).toBe(404)
    await until(async () => (await first.get('/v1/jobs/j')).body.settled.cancelled === 4)
    await first.stop()

    const broker = await testBroker({ dataDir })
    expect((await broker.get('/v1/jobs/j')).body).toMatchObject({
      waiting: 6,
      settled: { cancelled: 4 },
    })
    const consumer = await FakeConsumer.connect(broker.socketPath)
    await broker.post('/v1/jobs/j/flush')
    await consumer.work(() => broker.state().items.settled.completed === 6)
    const all = await results(broker, 'j')
    expect(all.map(({ id }) => id).sort()).toEqual([...ids].sort())
  })

  test('S35: GET /v1/items/{id} says where an item on disk stands', async () => {
    const broker = await testBroker({ dataDir: newDir() })
    await broker.post('/v1/jobs', { id: 'j' })
    await broker.post('/v1/items?job=j', items(5))
    const { body } = await broker.get(`/v1/items/${items(5)[3].id}?job=j`)
    expect(body).toMatchObject({ state: 'on_disk', attempts: 0, facts: { ahead: 3 } })
    expect(body.why).toMatch(/^on disk: 3 ahead in its shape/)
    expect((await broker.get('/v1/items/nobody?job=j')).status).toBe(404)
  })

  test('DELETE of an active job cancels what is on disk; a second one forgets it', async () => {
    const dataDir = newDir()
    const first = await testBroker({ dataDir })
    await first.post('/v1/jobs', { id: 'j' })
    await first.post('/v1/items?job=j', items(300))
    const answer = await remove(first, '/v1/jobs/j')
    expect(answer.status).toBe(200)
    await until(async () => (await first.get('/v1/jobs/j')).body.state === 'cancelled')
    await first.stop()

    const broker = await testBroker({ dataDir })
    expect((await broker.get('/v1/jobs/j')).body).toMatchObject({
      state: 'cancelled',
      waiting: 0,
      settled: { cancelled: 300 },
    })
    const refused = await broker.post('/v1/items?job=j', items(1, 8, 'late'))
    expect(refused.body.error.code).toBe('FABRIC_JOB_CANCELLED')
    const all = await results(broker, 'j')
    expect(all.length).toBe(300)
    expect(all.every(({ status }) => status === 'cancelled')).toBe(true)
    expect((await remove(broker, '/v1/jobs/j')).status).toBe(204)
    expect((await broker.get('/v1/jobs/j')).status).toBe(404)
  })
})

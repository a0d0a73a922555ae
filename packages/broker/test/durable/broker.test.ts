// Disk mode through real HTTP and a real store: what was told outlives the broker.
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { items, type TestBroker, temporaryFolder, testBroker } from '../support/broker.ts'
import { FakeConsumer } from '../support/fake-consumer.ts'
import { until } from '../support/until.ts'

const lines = (text: string) =>
  text
    .trim()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))

const ids = (text: string) => lines(text).map(({ id }) => id)

/** Takes and settles until the broker has so many completed items. */
async function work(broker: TestBroker, completed: number): Promise<void> {
  const consumer = await FakeConsumer.connect(broker.socketPath)
  await consumer.work(() => broker.state().items.settled.completed >= completed)
  consumer.close()
}

describe('disk mode', () => {
  test('S8: says what it promises, and its gate is open from the start', async () => {
    const dataDir = join(temporaryFolder(), 'data')
    const broker = await testBroker({ dataDir })
    expect(broker.log.some(({ msg }) => msg.startsWith('started; storage: disk, durable'))).toBe(
      true,
    )
    expect((await broker.get('/info')).body.storage).toEqual({ mode: 'disk', durable: true })
    expect(broker.state().storage).toMatchObject({ mode: 'disk', durable: true, dataDir })
    expect(broker.state().gate).toMatchObject({ open: true, reason: 'disk' })
  })

  test('items and results go through the disk: each has one result', async () => {
    const broker = await testBroker({ dataDir: join(temporaryFolder(), 'data') })
    await broker.post('/v1/jobs', { id: 'j' })
    const answer = await broker.post('/v1/items?job=j', items(40))
    expect(answer.body).toMatchObject({ accepted: 40, duplicate: 0, refused: 0 })
    await broker.post('/v1/jobs/j/flush')
    await work(broker, 40)
    const results = await broker.get('/v1/jobs/j/results?follow=true')
    expect(ids(results.text).sort()).toEqual(
      items(40)
        .map(({ id }) => id)
        .sort(),
    )
    expect((await broker.get('/v1/jobs/j')).body).toMatchObject({
      state: 'ended',
      accepted: 40,
      waiting: 0,
      settled: { completed: 40 },
    })
    expect(broker.state().batches.source.disk).toBeGreaterThan(0)
  })

  test('S36: what waits, ids, jobs and their end of input outlive the broker', async () => {
    const dataDir = join(temporaryFolder(), 'data')
    const first = await testBroker({ dataDir })
    await first.post('/v1/jobs', { id: 'j', model: 0, weight: 3 })
    await first.post('/v1/items?job=j', items(20))
    await first.post('/v1/jobs/j/flush')
    await first.stop()

    const broker = await testBroker({ dataDir })
    expect((await broker.get('/v1/jobs/j')).body).toMatchObject({
      state: 'flushed',
      accepted: 20,
      waiting: 20,
      weight: 3,
    })
    const again = await broker.post('/v1/items?job=j', items(20))
    expect(again.body).toMatchObject({ accepted: 0, duplicate: 20 })
    expect((await broker.get('/v1/jobs/j')).body).toMatchObject({ state: 'flushed', accepted: 20 })
    const other = await broker.post('/v1/items?job=j', [{ id: 'a0', tokens: [7, 7] }])
    expect(other.status).toBe(409)
    await work(broker, 20)
    const results = await broker.get('/v1/jobs/j/results?follow=true')
    expect(new Set(ids(results.text)).size).toBe(20)
  })

  test('results go on behind the offset that was read before the restart', async () => {
    const dataDir = join(temporaryFolder(), 'data')
    const first = await testBroker({ dataDir })
    await first.post('/v1/jobs', { id: 'j' })
    await first.post('/v1/items?job=j', items(30))
    await first.post('/v1/jobs/j/flush')
    await work(first, 30)
    const before = lines((await first.get('/v1/jobs/j/results?follow=true&limit=12')).text)
    expect(before).toHaveLength(12)
    await first.stop()

    const broker = await testBroker({ dataDir })
    expect((await broker.get('/v1/jobs/j')).body).toMatchObject({ state: 'ended' })
    const after = lines((await broker.get('/v1/jobs/j/results?offset=12&follow=true')).text)
    expect(after).toHaveLength(18)
    expect(after[0].offset).toBe(12)
    expect(new Set([...before, ...after].map(({ id }) => id)).size).toBe(30)
    await until(async () => (await broker.get('/v1/jobs/j')).body.unreadResultBytes === 0)
  })

  test('a new job gets no number of a deleted one, and its results are its own', async () => {
    const dataDir = join(temporaryFolder(), 'data')
    const first = await testBroker({ dataDir })
    await first.post('/v1/jobs', { id: 'j' })
    await first.post('/v1/items?job=j', items(4))
    await first.post('/v1/jobs/j/flush')
    await work(first, 4)
    await first.get('/v1/jobs/j/results?follow=true')
    expect((await fetch(`${first.httpUrl}/v1/jobs/j`, { method: 'DELETE' })).status).toBe(204)
    await first.stop()

    const broker = await testBroker({ dataDir })
    expect((await broker.get('/v1/jobs/j')).status).toBe(404)
    await broker.post('/v1/jobs', { id: 'j' })
    expect((await broker.get('/v1/jobs/j/results')).text).toBe('')
    const again = await broker.post('/v1/items?job=j', items(4))
    expect(again.body).toMatchObject({ accepted: 4, duplicate: 0 })
  })

  test('relaxed, what was answered is dispatched though its sync is far away', async () => {
    const relaxed = { sync: 'relaxed', syncIntervalMs: 60_000 }
    const broker = await testBroker({ dataDir: join(temporaryFolder(), 'data'), ...relaxed })
    const consumer = await FakeConsumer.connect(broker.socketPath)
    await broker.post('/v1/jobs', { id: 'j' })
    for (const prefix of ['a', 'b']) await broker.post('/v1/items?job=j', items(40, 8, prefix))
    await broker.post('/v1/jobs/j/flush')
    await consumer.work(() => broker.state().items.waiting + broker.state().items.leased === 0)
    expect(broker.state().items.settled).toMatchObject({ completed: 80, failed: 0 })
  })

  test('relaxed, an item whose sync is far away is found and cancelled by its id', async () => {
    const relaxed = { sync: 'relaxed', syncIntervalMs: 60_000 }
    const broker = await testBroker({ dataDir: join(temporaryFolder(), 'data'), ...relaxed })
    await broker.post('/v1/items', items(1))
    expect((await broker.get('/v1/items/a0')).body).toMatchObject({ state: 'on_disk' })
    const { body } = await broker.post('/v1/items/cancel', { job: 'default', ids: ['a0'] })
    expect(body).toEqual({ cancelled: ['a0'] })
  })

  test('durable: false is kept in memory only, by item and by request', async () => {
    const dataDir = join(temporaryFolder(), 'data')
    const first = await testBroker({ dataDir })
    const mixed = items(6).map((item, i) => ({ ...item, durable: i % 2 === 0 }))
    expect((await first.post('/v1/items', mixed)).body).toMatchObject({ accepted: 6 })
    const rest = await first.post('/v1/items?durable=false', items(4, 8, 'b'))
    expect(rest.body).toMatchObject({ accepted: 4 })
    expect(first.state().queue.disk.items).toBe(3)
    expect(first.state().queue.staging.items).toBe(7)
    await first.stop()
    const broker = await testBroker({ dataDir })
    expect(broker.state().items.waiting).toBe(3)
  })

  test('S34: a job whose results nobody reads stalls, says so, and goes on when they are read', async () => {
    const dataDir = join(temporaryFolder(), 'data')
    const broker = await testBroker({ dataDir, maxUnreadResultBytes: 1024 })
    const consumer = await FakeConsumer.connect(broker.socketPath)
    await broker.post('/v1/jobs', { id: 'j' })
    await broker.post('/v1/items?job=j', items(300))
    await broker.post('/v1/jobs/j/flush')
    // Results count once they are on disk: the consumer rests until then, or a slow disk is outrun.
    await consumer.work(
      () => broker.state().stalledJobs.length > 0 || broker.state().items.settled.completed >= 64,
    )
    const [stalled] = (await broker.untilState((state) => state.stalledJobs.length > 0)).stalledJobs
    expect(stalled).toMatchObject({ id: 'j' })
    expect(stalled.reason).toMatch(/results are unread/)
    expect(broker.state().items.settled.completed).toBeLessThan(300)
    const refused = await broker.post('/v1/items?job=j', items(1, 8, 'late'))
    expect(refused.status).toBe(429)
    const known = await broker.post('/v1/items?job=j', items(1))
    expect(known.body).toMatchObject({ duplicate: 1 })
    const reading = broker.get('/v1/jobs/j/results?follow=true')
    await consumer.work(() => broker.state().items.settled.completed === 300)
    expect(ids((await reading).text)).toHaveLength(300)
  })

  test('S34: a job that has ended is not stalled, though its results are unread', async () => {
    const dataDir = join(temporaryFolder(), 'data')
    const broker = await testBroker({ dataDir, maxUnreadResultBytes: 1024 })
    const consumer = await FakeConsumer.connect(broker.socketPath)
    await broker.post('/v1/jobs', { id: 'j' })
    // All in one batch: no result of it is there before the last item is dispatched.
    await broker.post('/v1/items?job=j', items(8, 8, 'x'.repeat(200)))
    await broker.post('/v1/jobs/j/flush')
    await consumer.work(() => broker.state().items.settled.completed === 8)
    const ended = async () => (await broker.get('/v1/jobs/j')).body
    await until(async () => (await ended()).state === 'ended')
    expect((await ended()).unreadResultBytes).toBeGreaterThan(1024)
    expect(broker.state().stalledJobs).toEqual([])
  })
})

describe('disk mode, jobs and deadlines', () => {
  test('a paused job is paused after a restart, and goes on when it is resumed', async () => {
    const dataDir = join(temporaryFolder(), 'data')
    const first = await testBroker({ dataDir })
    await first.post('/v1/jobs', { id: 'j' })
    await first.post('/v1/items?job=j', items(8))
    await first.post('/v1/jobs/j/pause')
    await first.stop()
    const broker = await testBroker({ dataDir })
    expect((await broker.get('/v1/jobs/j')).body).toMatchObject({ paused: true, waiting: 8 })
    expect(broker.state().stalledJobs).toMatchObject([{ id: 'j' }])
    expect(broker.state().stalledJobs[0].reason).toMatch(/paused/)
    const consumer = await FakeConsumer.connect(broker.socketPath)
    await broker.post('/v1/jobs/j/resume')
    await consumer.work(() => broker.state().items.settled.completed === 8)
  })
})

describe('memory mode', () => {
  test('does not take an item that must be durable', async () => {
    const broker = await testBroker()
    const { status, body } = await broker.post('/v1/items', [{ ...items(1)[0], durable: true }])
    expect(status).toBe(422)
    expect(body.error).toMatchObject({ code: 'FABRIC_ITEM_MALFORMED', field: 'items[0].durable' })
    expect((await broker.post('/v1/items?durable=true', items(1))).status).toBe(400)
  })
})

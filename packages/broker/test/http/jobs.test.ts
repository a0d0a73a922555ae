// Jobs and results through real HTTP: state, end, offsets, follow, what may be deleted when.
import net from 'node:net'
import { describe, expect, test } from 'vitest'
import { items, type TestBroker, testBroker } from '../support/broker.ts'
import { FakeConsumer } from '../support/fake-consumer.ts'
import { until } from '../support/until.ts'

const lines = (text: string) =>
  text
    .trim()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))

/** A broker whose job j has `count` results. */
async function withResults(count: number, flags = {}): Promise<TestBroker> {
  const broker = await testBroker(flags)
  const consumer = await FakeConsumer.connect(broker.socketPath)
  await broker.post('/v1/jobs', { id: 'j' })
  await broker.post('/v1/items?job=j', items(count))
  await broker.post('/v1/jobs/j/flush')
  await consumer.work(() => broker.state().items.settled.completed === count)
  return broker
}

describe('jobs', () => {
  test('a job is created once; the same request again gives the same job', async () => {
    const broker = await testBroker()
    const created = await broker.post('/v1/jobs', { id: 'j', model: 2 })
    expect(created.status).toBe(201)
    expect(created.body).toMatchObject({ id: 'j', model: 2, state: 'open', accepted: 0 })
    expect((await broker.post('/v1/jobs', { id: 'j', model: 2 })).status).toBe(200)
    const other = await broker.post('/v1/jobs', { id: 'j', model: 3 })
    expect(other.status).toBe(409)
  })

  test('a job has weight 1 unless it names its own; another weight is another job', async () => {
    const broker = await testBroker()
    expect((await broker.post('/v1/jobs', { id: 'plain' })).body.weight).toBe(1)
    const heavy = await broker.post('/v1/jobs', { id: 'heavy', weight: 1000 })
    expect(heavy.body.weight).toBe(1000)
    expect((await broker.get('/v1/jobs/heavy')).body.weight).toBe(1000)
    expect((await broker.post('/v1/jobs', { id: 'heavy' })).status).toBe(200)
    expect((await broker.post('/v1/jobs', { id: 'heavy', weight: 2 })).status).toBe(409)
  })

  test('a job without an id gets one, and without a body no model', async () => {
    const broker = await testBroker()
    const { status, body } = await broker.post('/v1/jobs')
    expect(status).toBe(201)
    expect(body.id).toMatch(/^[0-9a-f-]{36}$/)
    expect((await broker.get(`/v1/jobs/${body.id}`)).body).toEqual(body)
  })

  test.each([
    [{ id: '' }, 400, 'id'],
    [{ id: 'a/b' }, 400, 'id'],
    [{ id: 5 }, 400, 'id'],
    [{ model: 1.5 }, 422, 'model'],
    [{ modle: 1 }, 400, 'modle'],
    [{ weight: 0 }, 400, 'weight'],
    [{ weight: 1001 }, 400, 'weight'],
    [{ weight: 1.5 }, 400, 'weight'],
    [{ weight: '2' }, 400, 'weight'],
    [{ weight: null }, 400, 'weight'],
  ])('%j is refused with its field', async (body, status, field) => {
    const broker = await testBroker()
    const answer = await broker.post('/v1/jobs', body)
    expect(answer.status).toBe(status)
    expect(answer.body.error.field).toBe(field)
  })

  test('an unknown job is 404 everywhere', async () => {
    const broker = await testBroker()
    expect((await broker.get('/v1/jobs/none')).status).toBe(404)
    expect((await broker.get('/v1/jobs/none/results')).status).toBe(404)
    expect((await broker.post('/v1/jobs/none/flush')).status).toBe(404)
  })

  test('a job is open, flushed, ended; a new item opens it again', async () => {
    const broker = await testBroker()
    const consumer = await FakeConsumer.connect(broker.socketPath)
    await broker.post('/v1/jobs', { id: 'j' })
    await broker.post('/v1/items?job=j', items(3))
    expect((await broker.post('/v1/jobs/j/flush')).body.state).toBe('flushed')
    await consumer.work(async () => (await broker.get('/v1/jobs/j')).body.state === 'ended')
    expect((await broker.get('/v1/jobs/j')).body).toMatchObject({
      accepted: 3,
      settled: { completed: 3, failed: 0 },
      waiting: 0,
      leased: 0,
    })
    expect(broker.log.some(({ msg }) => msg.startsWith('job j ended: 3 items in 1 batches'))).toBe(
      true,
    )
    await broker.post('/v1/items?job=j', items(1, 8, 'b'))
    expect((await broker.get('/v1/jobs/j')).body.state).toBe('open')
  })

  test('an empty body that calls itself JSON is no body; a broken one is 400', async () => {
    const broker = await testBroker()
    expect((await broker.post('/v1/jobs/default/flush', '')).status).toBe(200)
    const broken = await broker.post('/v1/jobs', '{')
    expect(broken.status).toBe(400)
    expect(broken.body.error.code).toBe('FABRIC_BAD_REQUEST')
  })

  test('waiting and leased items are told apart', async () => {
    const broker = await testBroker()
    const consumer = await FakeConsumer.connect(broker.socketPath)
    await broker.post('/v1/items', items(11))
    await consumer.nextBatch()
    expect((await broker.get('/v1/jobs/default')).body).toMatchObject({ leased: 8, waiting: 3 })
  })

  test('a job that has ended can be deleted, and is unknown then; another is cancelled', async () => {
    const broker = await withResults(8)
    await broker.post('/v1/jobs', { id: 'open' })
    const remove = (id: string) => fetch(`${broker.httpUrl}/v1/jobs/${id}`, { method: 'DELETE' })
    const cancelled = await remove('open')
    expect(cancelled.status).toBe(200)
    expect(await cancelled.json()).toMatchObject({ state: 'cancelled' })
    expect((await remove('j')).status).toBe(204)
    expect((await broker.get('/v1/jobs/j')).status).toBe(404)
    expect((await broker.post('/v1/items?job=j', items(1))).status).toBe(404)
  })

  test('an ended default job that is deleted begins anew', async () => {
    const broker = await testBroker()
    await broker.post('/v1/jobs/default/flush')
    await fetch(`${broker.httpUrl}/v1/jobs/default`, { method: 'DELETE' })
    expect((await broker.post('/v1/items', items(1))).body.accepted).toBe(1)
  })

  test('S36: a job that ended is forgotten after resultsTtlMs', async () => {
    const broker = await withResults(8, { resultsTtlMs: 1000 })
    await until(async () => (await broker.get('/v1/jobs/j')).status === 404)
  })

  test('one job more than maxJobs is 429', async () => {
    const broker = await testBroker({ maxJobs: 2 })
    expect((await broker.post('/v1/jobs', { id: 'a' })).status).toBe(201)
    expect((await broker.post('/v1/jobs', { id: 'b' })).status).toBe(429)
  })
})

describe('results', () => {
  test('results carry id, status, attempts and value, in the order in which items ended', async () => {
    const broker = await withResults(24)
    const { headers, text } = await broker.get('/v1/jobs/j/results')
    expect(headers.get('content-type')).toContain('application/x-ndjson')
    const results = lines(text)
    expect(results.map(({ offset }) => offset)).toEqual(Array.from({ length: 24 }, (_, i) => i))
    expect(results[0]).toEqual({
      offset: 0,
      id: 'a0',
      status: 'completed',
      attempts: 1,
      result: [8],
    })
  })

  test('offset and limit cut the list; the end is an empty list; beyond it is refused', async () => {
    const broker = await withResults(24)
    const page = lines((await broker.get('/v1/jobs/j/results?offset=8&limit=3')).text)
    expect(page.map(({ offset }) => offset)).toEqual([8, 9, 10])
    expect((await broker.get('/v1/jobs/j/results?offset=24')).text).toBe('')
    const beyond = await broker.get('/v1/jobs/j/results?offset=25')
    expect(beyond.status).toBe(400)
    expect(beyond.body.error.field).toBe('offset')
  })

  test.each(['offset=-1', 'offset=x', 'limit=1.5', 'follow=maybe', 'encoding=hex', 'ofset=1'])(
    '?%s is refused with its name',
    async (query) => {
      const broker = await testBroker()
      const answer = await broker.get(`/v1/jobs/default/results?${query}`)
      expect(answer.status).toBe(400)
      expect(query.startsWith(answer.body.error.field)).toBe(true)
    },
  )

  test('encoding=base64 gives rows as bytes', async () => {
    const broker = await withResults(8)
    const [first] = lines((await broker.get('/v1/jobs/j/results?encoding=base64&limit=1')).text)
    expect(first.result.dtype).toBe('float32')
    const bytes = Uint8Array.from(Buffer.from(first.result.base64, 'base64'))
    expect(Array.from(new Float32Array(bytes.buffer))).toEqual([8])
  })

  test('follow streams results as they come and ends with the job', async () => {
    const broker = await testBroker()
    const consumer = await FakeConsumer.connect(broker.socketPath)
    await broker.post('/v1/jobs', { id: 'j' })
    const response = await fetch(`${broker.httpUrl}/v1/jobs/j/results?follow=true`)
    let text = ''
    const ended = (async () => {
      for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) text += chunk
    })()
    await broker.post('/v1/items?job=j', items(8))
    await consumer.work(() => text.split('\n').length > 8)
    await broker.post('/v1/items?job=j', items(3, 8, 'b'))
    await broker.post('/v1/jobs/j/flush')
    await consumer.work(() => broker.state().items.settled.completed === 11)
    await ended
    expect(lines(text)).toHaveLength(11)
  })

  test('a reader that went away goes on at its offset and loses nothing', async () => {
    const broker = await withResults(64)
    const cut = new AbortController()
    const response = await fetch(`${broker.httpUrl}/v1/jobs/j/results?follow=true&limit=20`, {
      signal: cut.signal,
    })
    const first = lines(await response.text())
    cut.abort()
    const rest = lines((await broker.get(`/v1/jobs/j/results?offset=${first.length}`)).text)
    expect(new Set([...first, ...rest].map(({ id }) => id)).size).toBe(64)
  })

  test('S34: what was streamed counts as read; reading it again does not count twice', async () => {
    const broker = await withResults(16)
    const before = (await broker.get('/v1/jobs/j')).body.unreadResultBytes
    expect(before).toBeGreaterThan(0)
    await broker.get('/v1/jobs/j/results?limit=8')
    await broker.get('/v1/jobs/j/results?limit=8')
    expect((await broker.get('/v1/jobs/j')).body.unreadResultBytes).toBe(before / 2)
    await broker.get('/v1/jobs/j/results')
    expect((await broker.get('/v1/jobs/j')).body.unreadResultBytes).toBe(0)
  })

  test('a reader that breaks off finds what it has not read at its offset, with nothing kept', async () => {
    const broker = await testBroker({ maxKeptResultBytes: 0 })
    const consumer = await FakeConsumer.connect(broker.socketPath)
    await broker.post('/v1/items', items(2000))
    await consumer.work(() => broker.state().items.settled.completed === 2000)
    const { hostname, port } = new URL(broker.httpUrl)
    const reader = net.connect(Number(port), hostname)
    reader.write('GET /v1/jobs/default/results?follow=true HTTP/1.1\r\nhost: x\r\n\r\n')
    await new Promise((resolve) => reader.once('data', resolve))
    reader.destroy()
    const path = '/v1/jobs/default/results'
    expect(lines((await broker.get(`${path}?limit=1000`)).text)).toHaveLength(1000)
    // Asking from 1000 on says that the first 1000 have arrived.
    expect(lines((await broker.get(`${path}?offset=1000`)).text)).toHaveLength(1000)
    expect((await broker.get(path)).status).toBe(410)
  })

  test('S34: a job goes on under maxUnreadResultBytes while one reader follows it', async () => {
    const broker = await testBroker({ maxUnreadResultBytes: 1024 })
    const consumer = await FakeConsumer.connect(broker.socketPath)
    await broker.post('/v1/items', items(400))
    await broker.post('/v1/jobs/default/flush')
    const following = broker.get('/v1/jobs/default/results?follow=true')
    await consumer.work(() => broker.state().items.settled.completed === 400)
    expect(lines((await following).text)).toHaveLength(400)
  })

  test('S34: asking from an offset that nobody was given reads nothing before it', async () => {
    const broker = await withResults(16)
    const before = (await broker.get('/v1/jobs/j')).body.unreadResultBytes
    await broker.get('/v1/jobs/j/results?offset=8')
    expect((await broker.get('/v1/jobs/j')).body.unreadResultBytes).toBe(before)
  })

  test('maxKeptResultBytes: read results make room, and their offset is 410', async () => {
    const broker = await withResults(2000, { maxKeptResultBytes: 0 })
    expect(lines((await broker.get('/v1/jobs/j/results')).text)).toHaveLength(2000)
    const again = await broker.get('/v1/jobs/j/results')
    expect(again.status).toBe(410)
    expect(again.body.error).toMatchObject({ code: 'FABRIC_RESULTS_GONE', field: 'offset' })
  })
})

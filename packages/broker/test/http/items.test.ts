// POST /v1/items through real HTTP: every accepted form, every refusal with its code, field and line.
import net from 'node:net'
import Fastify from 'fastify'
import { describe, expect, onTestFinished, test } from 'vitest'
import { itemsRoute } from '../../src/http/items-route.ts'
import { Job } from '../../src/jobs.ts'
import { ResultLog } from '../../src/results/log.ts'
import { items, ndjson, type TestBroker, testBroker } from '../support/broker.ts'
import { FakeConsumer } from '../support/fake-consumer.ts'
import { until } from '../support/until.ts'

const NDJSON = 'application/x-ndjson'
const one = { id: 'a', tokens: [1, 2, 3] }

describe('items: forms of the body', () => {
  test.each([
    ['one object', one, 1],
    ['an array', items(3), 3],
    ['a list under items', { items: items(3) }, 3],
  ])('%s is accepted', async (_name, body, count) => {
    const broker = await testBroker()
    const answer = await broker.post('/v1/items', body)
    expect(answer.status).toBe(200)
    expect(answer.body).toMatchObject({ accepted: count, duplicate: 0, refused: 0 })
    expect(answer.body.items).toHaveLength(count)
    expect(answer.body.items[0].status).toBe('accepted')
  })

  test('NDJSON is accepted line by line; empty lines and a missing last line feed do not matter', async () => {
    const broker = await testBroker()
    const body = `${JSON.stringify(one)}\r\n\n${JSON.stringify({ ...one, id: 'b' })}`
    const answer = await broker.post('/v1/items', body, NDJSON)
    expect(answer.body).toMatchObject({ accepted: 2, items: [{ id: 'a' }, { id: 'b' }] })
  })

  test('thousands of items in one body keep their order in the answer', async () => {
    const broker = await testBroker()
    const answer = await broker.post('/v1/items', ndjson(items(5000, 3)), NDJSON)
    expect(answer.body.accepted).toBe(5000)
    expect(answer.body.items.map(({ id }: { id: string }) => id)).toEqual(
      items(5000).map(({ id }) => id),
    )
    expect(broker.state().items.accepted).toBe(5000)
  })

  test('a payload with the length it stands for is accepted and reaches the consumer', async () => {
    const broker = await testBroker()
    const consumer = await FakeConsumer.connect(broker.socketPath)
    const payload = Buffer.from('opaque').toString('base64')
    await broker.post('/v1/items', [{ id: 'p', payload, length: 8 }, ...items(7)])
    const { view } = await consumer.nextBatch()
    const payloads = new TextDecoder().decode(view.payloads!.slice())
    expect(payloads).toBe('opaque')
    expect(Array.from(view.payloadEnds!)).toEqual([6, 6, 6, 6, 6, 6, 6, 6])
    expect(view.lengths[0]).toBe(8)
    expect(Array.from(view.inputIds.slice(0, 8))).toEqual([0, 0, 0, 0, 0, 0, 0, 0])
  })

  test('S36: the same id with the same body is a duplicate, with another body a conflict', async () => {
    const broker = await testBroker()
    await broker.post('/v1/items', one)
    const again = await broker.post('/v1/items', one)
    expect(again.status).toBe(200)
    expect(again.body).toMatchObject({ duplicate: 1, items: [{ id: 'a', status: 'duplicate' }] })
    const other = await broker.post('/v1/items', { ...one, tokens: [9] })
    expect(other.status).toBe(409)
    expect(other.body.error.code).toBe('FABRIC_ID_CONFLICT')
  })

  test('items belong to the job of the query, or to the one they name', async () => {
    const broker = await testBroker()
    await broker.post('/v1/jobs', { id: 'j1', model: 3 })
    await broker.post('/v1/jobs', { id: 'j2' })
    const answer = await broker.post('/v1/items?job=j1', [one, { ...one, job: 'j2' }])
    expect(answer.body.accepted).toBe(2)
    expect((await broker.get('/v1/jobs/j1')).body.accepted).toBe(1)
    expect((await broker.get('/v1/jobs/j2')).body.accepted).toBe(1)
    const models = broker.state().unserved.map(({ model }) => model)
    expect(models.sort()).toEqual([0, 3])
  })
})

describe('items: refusals of one item', () => {
  const long = 'x'.repeat(513)
  test.each([
    ['no id', { tokens: [1] }, 'FABRIC_ITEM_MALFORMED', 'id'],
    ['an empty id', { id: '', tokens: [1] }, 'FABRIC_ITEM_MALFORMED', 'id'],
    ['an id that is a number', { id: 7, tokens: [1] }, 'FABRIC_ITEM_MALFORMED', 'id'],
    ['an id that is too long', { id: long, tokens: [1] }, 'FABRIC_ITEM_MALFORMED', 'id'],
    ['half a surrogate as id', { id: '\ud800', tokens: [1] }, 'FABRIC_ITEM_MALFORMED', 'id'],
    ['no tokens', { id: 'a' }, 'FABRIC_ITEM_MALFORMED', 'tokens'],
    ['empty tokens', { id: 'a', tokens: [] }, 'FABRIC_ITEM_MALFORMED', 'tokens'],
    ['tokens that are a string', { id: 'a', tokens: '1 2' }, 'FABRIC_ITEM_MALFORMED', 'tokens'],
    ['a negative token', { id: 'a', tokens: [1, -1] }, 'FABRIC_ITEM_MALFORMED', 'tokens[1]'],
    ['a token over int32', { id: 'a', tokens: [2 ** 31] }, 'FABRIC_ITEM_MALFORMED', 'tokens[0]'],
    ['a fraction as token', { id: 'a', tokens: [1.5] }, 'FABRIC_ITEM_MALFORMED', 'tokens[0]'],
    ['a string as token', { id: 'a', tokens: ['1'] }, 'FABRIC_ITEM_MALFORMED', 'tokens[0]'],
    ['null as token', { id: 'a', tokens: [null] }, 'FABRIC_ITEM_MALFORMED', 'tokens[0]'],
    ['a field that is unknown', { ...one, lenght: 3 }, 'FABRIC_ITEM_MALFORMED', 'lenght'],
    ['text without a tokenizer', { id: 'a', text: 'hi' }, 'FABRIC_TEXT_NEEDS_TOKENIZER', 'text'],
    ['a model that is a string', { ...one, model: 'bert' }, 'FABRIC_MODEL_UNKNOWN', 'model'],
    ['a negative model', { ...one, model: -1 }, 'FABRIC_MODEL_UNKNOWN', 'model'],
    ['a length beside tokens', { ...one, length: 3 }, 'FABRIC_ITEM_MALFORMED', 'length'],
    ['tokens and payload', { ...one, payload: 'AAAA' }, 'FABRIC_ITEM_MALFORMED', 'payload'],
    ['a payload without length', { id: 'a', payload: 'AAAA' }, 'FABRIC_ITEM_MALFORMED', 'length'],
    ['length 0', { id: 'a', payload: 'AAAA', length: 0 }, 'FABRIC_ITEM_MALFORMED', 'length'],
    ['no base64', { id: 'a', payload: '?!', length: 1 }, 'FABRIC_ITEM_MALFORMED', 'payload'],
    ['an empty payload', { id: 'a', payload: '', length: 1 }, 'FABRIC_ITEM_MALFORMED', 'payload'],
    ['a job that is a number', { ...one, job: 1 }, 'FABRIC_ITEM_MALFORMED', 'job'],
  ])(
    '%s is 422 with its field, alone, in a list and in NDJSON',
    async (_name, item, code, field) => {
      const broker = await testBroker()
      const alone = await broker.post('/v1/items', item)
      expect(alone.status).toBe(422)
      expect(alone.body.error).toMatchObject({ code, field })
      const list = await broker.post('/v1/items', { items: [...items(2), item] })
      expect(list.status).toBe(200)
      expect(list.body.items[2].error).toMatchObject({ code, field: `items[2].${field}` })
      const lines = await broker.post('/v1/items', ndjson([...items(2, 8, 'b'), item]), NDJSON)
      expect(lines.status).toBe(200)
      expect(lines.body.items[2].error).toMatchObject({ code, field, line: 3 })
      expect(broker.state().items.accepted).toBe(4)
    },
  )

  test('an item that is no object is 422', async () => {
    const broker = await testBroker()
    expect((await broker.post('/v1/items', '7')).body.error.code).toBe('FABRIC_ITEM_MALFORMED')
    const list = await broker.post('/v1/items', [[1], null])
    expect(list.status).toBe(422)
    expect(list.body.error.field).toBe('items[0]')
  })

  test('a line that is no JSON is refused with its line; the others are accepted', async () => {
    const broker = await testBroker()
    const answer = await broker.post('/v1/items', `${JSON.stringify(one)}\n{oops\n`, NDJSON)
    expect(answer.status).toBe(200)
    expect(answer.body.items[1]).toMatchObject({ id: null, error: { line: 2 } })
  })

  test('a job that is unknown is 404, in the query and in the item', async () => {
    const broker = await testBroker()
    expect((await broker.post('/v1/items?job=none', one)).status).toBe(404)
    const answer = await broker.post('/v1/items', { ...one, job: 'none' })
    expect(answer.status).toBe(404)
    expect(answer.body.error).toMatchObject({ code: 'FABRIC_NOT_FOUND', field: 'job' })
  })

  const payload = (bytes: number) => Buffer.alloc(bytes).toString('base64')
  test.each([
    ['tokens', { id: 'a', tokens: Array(300).fill(1) }, 'tokens', /maxItemBytes/],
    ['payload', { id: 'a', payload: payload(1100), length: 1 }, 'payload', /maxItemBytes/],
    ['length', { id: 'a', payload: payload(4), length: 9000 }, 'length', /maxBatchBytes/],
  ])(
    'S34: %s over a limit is 413 with the field and the limit',
    async (_name, item, field, limit) => {
      const broker = await testBroker({ maxItemBytes: 1024, maxBatchBytes: 16_384 })
      const alone = await broker.post('/v1/items', item)
      expect(alone.status).toBe(413)
      expect(alone.body.error).toMatchObject({ code: 'FABRIC_TOO_LARGE', field })
      expect(alone.body.error.message).toMatch(limit)
      const list = await broker.post('/v1/items', [one, item])
      expect(list.body.items[1].error.field).toBe(`items[1].${field}`)
      const lines = await broker.post('/v1/items', ndjson([one, item]), NDJSON)
      expect(lines.body.items[1].error).toMatchObject({ field, line: 2 })
    },
  )

  test('S36: a conflict names the id', async () => {
    const broker = await testBroker()
    await broker.post('/v1/items', one)
    const list = await broker.post('/v1/items', [{ ...one, tokens: [9] }])
    expect(list.body.error).toMatchObject({ code: 'FABRIC_ID_CONFLICT', field: 'items[0].id' })
  })
})

test('a job that is deleted while a long body comes in refuses the rest, not the broker', async () => {
  const broker = await testBroker()
  const consumer = await FakeConsumer.connect(broker.socketPath)
  await broker.post('/v1/jobs', { id: 'j' })
  await broker.post('/v1/items?job=j', one)
  await broker.post('/v1/jobs/j/flush')
  await consumer.work(async () => (await broker.get('/v1/jobs/j')).body.state === 'ended')
  // Duplicates do not open the job again, so that it can be deleted meanwhile.
  const sending = broker.post('/v1/items?job=j', ndjson(Array(50_000).fill(one)), NDJSON)
  await broker.untilState((state) => state.items.duplicate > 0)
  const url = `${broker.httpUrl}/v1/jobs/j`
  const removing = fetch(url, { method: 'DELETE' })
  expect([200, 404]).toContain((await sending).status)
  expect((await removing).status).toBe(204)
  expect((await broker.get('/livez')).status).toBe(200)
})

describe('items: refusals of the body', () => {
  test.each([
    ['no JSON', '{', 'application/json', 400, 'FABRIC_BAD_REQUEST'],
    ['another type', 'a=b', 'application/x-www-form-urlencoded', 400, 'FABRIC_BAD_REQUEST'],
    ['an empty list', '[]', 'application/json', 422, 'FABRIC_ITEM_MALFORMED'],
    ['an empty list of items', '{"items":[]}', 'application/json', 422, 'FABRIC_ITEM_MALFORMED'],
    ['items that are no list', '{"items":{}}', 'application/json', 422, 'FABRIC_ITEM_MALFORMED'],
    [
      'a field beside items',
      '{"items":[],"x":1}',
      'application/json',
      422,
      'FABRIC_ITEM_MALFORMED',
    ],
    ['no line', '\n\n', NDJSON, 422, 'FABRIC_ITEM_MALFORMED'],
  ])('%s is refused', async (_name, body, type, status, code) => {
    const broker = await testBroker()
    const answer = await broker.post('/v1/items', body, type)
    expect(answer.status).toBe(status)
    expect(answer.body.error.code).toBe(code)
  })

  test('bytes that are no UTF-8 are refused', async () => {
    const broker = await testBroker()
    const response = await fetch(`${broker.httpUrl}/v1/items`, {
      method: 'POST',
      headers: { 'content-type': NDJSON },
      body: new Uint8Array([0x7b, 0xff, 0xfe, 0x7d]),
    })
    expect(response.status).toBe(400)
  })

  test('a body over maxBodyBytes is 413', async () => {
    const broker = await testBroker({ maxBodyBytes: 1024 })
    const answer = await broker.post('/v1/items', items(100))
    expect(answer.status).toBe(413)
    expect(answer.body.error.code).toBe('FABRIC_TOO_LARGE')
  })

  test.each([
    ['an array', items(4), 'application/json'],
    ['a list under items', { items: items(4) }, 'application/json'],
    ['NDJSON', ndjson(items(4)), NDJSON],
    ['NDJSON with blank lines', `\n\n\n${JSON.stringify(one)}`, NDJSON],
  ])('%s of more than maxItemsPerRequest is 413 and nothing of it is taken', async (...row) => {
    const [, body, type] = row
    const broker = await testBroker({ maxItemsPerRequest: 3 })
    const answer = await broker.post('/v1/items', body, type)
    expect(answer.status).toBe(413)
    expect(answer.body.error).toMatchObject({ code: 'FABRIC_TOO_LARGE', field: 'items' })
    expect(answer.body.error.message).toContain('maxItemsPerRequest')
    expect(broker.state().items.accepted).toBe(0)
    expect((await broker.post('/v1/items', `${ndjson(items(3))}\n`, NDJSON)).body.accepted).toBe(3)
  })

  test('the limit that a body is over is named, or said to be fixed', async () => {
    const broker = await testBroker({ maxBodyBytes: 1024 })
    const named = await broker.post('/v1/items', items(100))
    expect(named.body.error.message).toBe('the body is over 1024 bytes (maxBodyBytes)')
    const fixed = await broker.post('/v1/jobs', { id: 'x'.repeat(70_000) })
    expect(fixed.status).toBe(413)
    expect(fixed.body.error.message).toMatch(/over 65536 bytes \(a fixed limit/)
  })

  test('the rest of a long body is left when its sender has gone', async () => {
    const app = Fastify()
    onTestFinished(() => app.close())
    const job = new Job(0, 'default', null, 1, null, new ResultLog())
    let blocks = 0
    const target = {
      job: () => job,
      submit: (_job: Job, { count }: { count: number }) => {
        blocks += 1
        client.destroy()
        return { codes: new Uint8Array(count), retryAfterMs: 0, durable: null }
      },
      room: () => Promise.resolve(),
      canBeDurable: false,
      maxItemBytes: 1024,
    }
    const limits = { maxBodyBytes: 2 ** 24, maxItemsPerRequest: 100_000 }
    app.register(async (scope) => itemsRoute(scope, target, limits))
    await app.listen({ host: '127.0.0.1', port: 0 })
    let left = false
    app.server.on('connection', (socket) => socket.on('close', () => (left = true)))
    const body = `${JSON.stringify(one)}\n`.repeat(100_000)
    const head = `POST /v1/items HTTP/1.1\r\nhost: x\r\ncontent-type: ${NDJSON}\r\ncontent-length: ${body.length}\r\n\r\n`
    const client = net.connect((app.server.address() as net.AddressInfo).port, '127.0.0.1')
    client.write(head + body)
    await until(() => left)
    const taken = blocks
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
    expect(blocks).toBe(taken)
    expect(blocks).toBeLessThan(50)
  })

  test('a parameter that is unknown is refused by name', async () => {
    const broker = await testBroker()
    const answer = await broker.post('/v1/items?jbo=x', one)
    expect(answer.status).toBe(400)
    expect(answer.body.error.field).toBe('jbo')
  })
})

describe('items: room (S34)', () => {
  const fill = async (flags: Record<string, unknown>): Promise<TestBroker> => {
    const broker = await testBroker(flags)
    await broker.post('/v1/items', items(6, 8, 'first'))
    return broker
  }

  test.each([
    ['maxQueuedItems', { maxQueuedItems: 10 }],
    ['maxQueuedTokens', { maxQueuedTokens: 80 }],
  ])('over %s a list is accepted as its longest prefix', async (_name, flags) => {
    const broker = await fill(flags)
    const answer = await broker.post('/v1/items', items(10))
    expect(answer.status).toBe(200)
    expect(answer.body).toMatchObject({ accepted: 4, refused: 6 })
    expect(answer.body.items.slice(4)).toSatisfy((rest: { error: { code: string } }[]) =>
      rest.every(({ error }) => error.code === 'FABRIC_QUEUE_FULL'),
    )
    expect(answer.body.retryAfterMs).toBeGreaterThan(0)
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
    const more = await broker.post('/v1/items', items(1, 8, 'more'))
    expect(more.status).toBe(429)
    expect(more.body.error.code).toBe('FABRIC_QUEUE_FULL')
    expect(Number(more.headers.get('retry-after'))).toBeGreaterThan(0)
  })

  test('a prefix ends at the first refusal for room, over all blocks of a long body', async () => {
    const broker = await testBroker({ maxQueuedItems: 1500 })
    const answer = await broker.post('/v1/items', ndjson(items(5000, 1)), NDJSON)
    expect(answer.body).toMatchObject({ accepted: 1500, refused: 3500 })
    const statuses = answer.body.items.map(({ status }: { status: string }) => status)
    expect(statuses.lastIndexOf('accepted')).toBe(1499)
  })

  test('a full queue opens the gate, and room comes back as batches are settled', async () => {
    const broker = await fill({ maxQueuedItems: 8, releaseThreshold: 1e6 })
    const consumer = await FakeConsumer.connect(broker.socketPath, { contract: { batchSize: 4 } })
    expect((await broker.post('/v1/items', items(3))).body.accepted).toBe(2)
    await consumer.work(() => broker.state().items.settled.completed === 8)
    expect(broker.state().gate.reason).toBe('full')
    expect((await broker.post('/v1/items', items(3))).body).toMatchObject({
      accepted: 1,
      duplicate: 2,
    })
  })

  test('maxUnreadResultBytes: a job takes nothing new until its results are read', async () => {
    const broker = await testBroker({ maxUnreadResultBytes: 1024 })
    const consumer = await FakeConsumer.connect(broker.socketPath)
    await broker.post('/v1/items', items(64))
    await consumer.work(() => broker.state().items.settled.completed >= 40)
    const refused = await broker.post('/v1/items', items(1, 8, 'late'))
    expect(refused.status).toBe(429)
    expect(refused.body.error.code).toBe('FABRIC_RESULTS_UNREAD')
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    await broker.get('/v1/jobs/default/results')
    expect((await broker.post('/v1/items', items(1, 8, 'late'))).body.accepted).toBe(1)
    await broker.post('/v1/jobs/default/flush')
    await consumer.work(async () => {
      await broker.get('/v1/jobs/default/results')
      return broker.state().items.settled.completed === 65
    })
  })
})

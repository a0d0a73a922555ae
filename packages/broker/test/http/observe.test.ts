// What looks and changes nothing: probes, state, metrics, errors of unknown routes, listening.
import net from 'node:net'
import { describe, expect, test } from 'vitest'
import { startBroker } from '../../src/index.ts'
import { items, temporaryFolder, testBroker } from '../support/broker.ts'
import { FakeConsumer } from '../support/fake-consumer.ts'

/** Every metric of interfaces.md that a broker without disk tier and quarantine has. */
const METRICS = `fabric_items_submitted_total fabric_items_settled_total fabric_queue_items
  fabric_queue_tokens fabric_oldest_item_age_seconds fabric_lanes_active fabric_gate_open
  fabric_gate_opened_info fabric_gate_held_seconds fabric_batch_assembly_seconds
  fabric_batch_fill_ratio fabric_batch_items fabric_batch_closed_total fabric_batch_source_total
  fabric_batch_padded_tokens_total fabric_batch_actual_tokens_total fabric_shape_switches_total
  fabric_cleanup_entries_total fabric_cleanup_seconds_total fabric_cleanup_batches_total
  fabric_cleanup_items_total fabric_consumers fabric_channel_batches
  fabric_consumer_idle_seconds_total fabric_reclaimed_items_total fabric_results_late_total
  fabric_quarantined_items fabric_rejected_total fabric_ring_used_bytes
  fabric_ring_tail_gap_bytes_total fabric_ring_claim_retries_total fabric_ring_full_total
  fabric_ring_page_size_bytes fabric_item_queue_seconds`.split(/\s+/)

describe('probes', () => {
  test('livez, healthz and health answer while nothing is ready', async () => {
    const broker = await testBroker()
    for (const path of ['/livez', '/healthz', '/health'])
      expect((await broker.get(path)).status).toBe(200)
    const ready = await broker.get('/readyz')
    expect(ready.status).toBe(503)
    expect(ready.body).toEqual({ ready: false, reasons: ['no consumer is connected'] })
  })

  test('S6: readyz names a model that nobody serves, and is ready without', async () => {
    const broker = await testBroker()
    await FakeConsumer.connect(broker.socketPath)
    expect((await broker.get('/readyz')).status).toBe(200)
    await broker.post('/v1/items', { id: 'x', model: 9, tokens: [1] })
    expect((await broker.get('/readyz')).body.reasons).toEqual([
      'no consumer serves model 9; 1 items wait for it',
    ])
  })

  test('info names version, storage and limits; the root points to the routes', async () => {
    const broker = await testBroker()
    expect((await broker.get('/info')).body).toMatchObject({
      name: 'fabric-broker',
      storage: { mode: 'memory', durable: false },
    })
    expect((await broker.get('/')).text).toContain('/v1/items')
  })

  test('an unknown route is 404 in the shape of every error', async () => {
    const broker = await testBroker()
    const answer = await broker.get('/v2/items')
    expect(answer.status).toBe(404)
    expect(answer.body.error.code).toBe('FABRIC_NOT_FOUND')
  })
})

describe('errors from before a route have the shape of every error', () => {
  const get = (path: string) => `GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`
  const post = 'POST /v1/items HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n'
  test.each([
    ['a path that is no percent-encoding', get('/v1/jobs/%zz'), 400, 'FABRIC_BAD_REQUEST'],
    ['a job id that is too long', get(`/v1/jobs/${'x'.repeat(600)}`), 400, 'FABRIC_BAD_REQUEST'],
    ['a request line that is none', 'nonsense\r\n\r\n', 400, 'FABRIC_BAD_REQUEST'],
    [
      'a chunk without a length',
      `${post}transfer-encoding: chunked\r\n\r\nzz\r\n`,
      400,
      'FABRIC_BAD_REQUEST',
    ],
    [
      'headers that are too long',
      `GET / HTTP/1.1\r\nhost: x\r\nx: ${'x'.repeat(20_000)}\r\n\r\n`,
      413,
      'FABRIC_TOO_LARGE',
    ],
  ])('%s', async (_name, request, status, code) => {
    const broker = await testBroker()
    const { hostname, port } = new URL(broker.httpUrl)
    const socket = net.connect(Number(port), hostname)
    socket.on('error', () => {})
    let text = ''
    socket.setEncoding('utf8').on('data', (chunk) => (text += chunk))
    const closed = new Promise((resolve) => socket.on('close', resolve))
    socket.write(request)
    await closed
    expect(text).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    const { error } = JSON.parse(text.slice(text.indexOf('\r\n\r\n')))
    expect(error).toEqual({ code, message: expect.any(String) })
  })

  test.each([
    ['PUT', '/v1/items', 'POST'],
    ['PATCH', '/v1/jobs/x?y=1', 'DELETE, GET, HEAD'],
    ['POST', '/v1/jobs/x/results', 'GET'],
    ['DELETE', '/metrics', 'GET, HEAD'],
  ])('%s %s is 405 with the methods that the path takes', async (method, path, allow) => {
    const broker = await testBroker()
    const response = await fetch(broker.httpUrl + path, { method })
    expect(response.status).toBe(405)
    expect(response.headers.get('allow')!.split(', ').sort().join(', ')).toBe(allow)
    expect(await response.json()).toMatchObject({ error: { code: 'FABRIC_METHOD' } })
  })
})

describe('metrics and state', () => {
  test('every metric of the list is there, and a consumer’s series end when it is gone', async () => {
    const broker = await testBroker()
    const consumer = await FakeConsumer.connect(broker.socketPath)
    await broker.post('/v1/items', items(16))
    await consumer.work(() => broker.state().items.settled.completed === 16)
    const { text, headers } = await broker.get('/metrics')
    expect(headers.get('content-type')).toContain('text/plain')
    for (const name of METRICS) expect(text).toContain(`# TYPE ${name} `)
    expect(text).toContain('fabric_items_submitted_total{model="0"} 16')
    expect(text).toContain('fabric_items_settled_total{model="0",status="completed"} 16')
    expect(text).toContain('fabric_batch_assembly_seconds_count 2')
    expect(text).toContain('fabric_batch_fill_ratio_bucket{le="0.995"} 0')
    expect(text).toContain('fabric_batch_fill_ratio_bucket{le="1"} 2')
    expect(text).toContain('fabric_ring_page_size_bytes{consumer="gpu0"} 4096')
    consumer.close()
    await broker.untilState((state) => state.consumers.length === 0)
    await expect
      .poll(async () => (await broker.get('/metrics')).text)
      .not.toContain('consumer="gpu0"')
  })

  test('the state holds what a final report needs', async () => {
    const broker = await testBroker()
    const consumer = await FakeConsumer.connect(broker.socketPath)
    await broker.post('/v1/items', items(20))
    await broker.post('/v1/jobs/default/flush')
    await consumer.work(() => broker.state().items.settled.completed === 20)
    const { body } = await broker.get('/v1/state')
    expect(body).toMatchObject({
      gate: { open: true, reason: 'threshold' },
      items: { accepted: 20, waiting: 0, leased: 0, settled: { completed: 20 } },
      batches: {
        count: 3,
        items: 20,
        normal: { count: 2, items: 16 },
        closedBy: { token_limit: 2, lane_empty: 1 },
        paddingWaste: 0,
        fill: { all: { p1: 0.5, p50: 1 }, normal: { batches: 2, p1: 1 } },
      },
      assembly: { count: 3 },
      cleanup: { batches: 1, items: 4 },
      jobs: { known: 1, ended: 1 },
    })
    expect(body.consumers[0]).toMatchObject({
      name: 'gpu0',
      transport: 'ring',
      batches: 3,
      ring: { pages: 'base', pageSizeBytes: 4096 },
    })
    expect(body.consumers[0].idleShareDuringInput).toBeLessThanOrEqual(1)
  })
})

describe('listening', () => {
  test('a host that others can reach is refused without --insecure', async () => {
    const socket = `${temporaryFolder()}/b.sock`
    const start = startBroker({ flags: { socket, http: '0.0.0.0:0' } })
    await expect(start).rejects.toMatchObject({ code: 'FABRIC_INSECURE', field: 'http' })
  })

  test('--insecure allows it', async () => {
    const broker = await testBroker({ http: '0.0.0.0:0', insecure: true })
    expect((await broker.get('/livez')).status).toBe(200)
  })

  test('a port that is taken is FABRIC_PORT_IN_USE, and the socket is given back', async () => {
    const first = await testBroker()
    const http = first.httpUrl.replace('http://', '')
    const socket = `${temporaryFolder()}/b.sock`
    const second = () => startBroker({ flags: { socket, http, debuggable: true } })
    await expect(second()).rejects.toMatchObject({ code: 'FABRIC_PORT_IN_USE' })
    await expect(second()).rejects.toMatchObject({ code: 'FABRIC_PORT_IN_USE' })
  })
})

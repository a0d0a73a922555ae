// The consumer's connection, from hello to death (scheduling.md S23 to S27).
import { readdirSync } from 'node:fs'
import net from 'node:net'
import { encodeFrame, encodeHello, FrameType } from '@fabric/protocol'
import { describe, expect, test } from 'vitest'
import { items, testBroker } from '../support/broker.ts'
import { FakeConsumer, hello } from '../support/fake-consumer.ts'
import { until } from '../support/until.ts'

describe('connection: introduction', () => {
  test('a consumer that says hello is welcomed with its contract, transport and reason', async () => {
    const broker = await testBroker()
    const consumer = await FakeConsumer.connect(broker.socketPath)
    expect(consumer.welcome).toMatchObject({
      name: 'gpu0',
      layout: 'padded',
      roundTo: 8,
      maxInFlight: 1,
      transport: 'ring',
      ring: { capacityBytes: 4 * 2 ** 20, pageSizeBytes: 4096 },
    })
    expect(consumer.welcome.transportReason).toMatch(/same host/)
    expect(broker.state().consumers).toHaveLength(1)
  })

  test('S18: a consumer that names no layout gets the ragged one under the actual rule', async () => {
    const broker = await testBroker({ budgetRule: 'actual' })
    const consumer = await FakeConsumer.connect(broker.socketPath)
    expect(consumer.welcome.layout).toBe('ragged')
    const contract = {
      batchSize: 4,
      tokens: 64,
      inputLength: 64,
      model: 0,
      layout: 'padded' as const,
    }
    const other = await FakeConsumer.connect(broker.socketPath, { contract })
    expect(other.welcome.layout).toBe('padded')
  })

  test('a second consumer of the same name gets a name of its own', async () => {
    const broker = await testBroker()
    await FakeConsumer.connect(broker.socketPath)
    const second = await FakeConsumer.connect(broker.socketPath)
    expect(second.welcome.name).toBe('gpu0-2')
  })

  test('control characters in a name do not reach logs, labels or terminals', async () => {
    const broker = await testBroker()
    const { welcome } = await FakeConsumer.connect(broker.socketPath, { name: 'a\u001b[2Jb\n' })
    expect(welcome.name).toBe('a?[2Jb?')
  })

  test('a contract that is none is refused with the field', async () => {
    const broker = await testBroker()
    const refused = FakeConsumer.connect(broker.socketPath, { contract: { batchSize: 0 } })
    await expect(refused).rejects.toMatchObject({
      code: 'FABRIC_CONTRACT_INVALID',
      field: 'contract.batchSize',
    })
  })

  test('a connection that says nothing is closed at its deadline', async () => {
    const broker = await testBroker({}, { helloDeadlineMs: 30 })
    const socket = net.connect(broker.socketPath)
    const received: Buffer[] = []
    socket.on('data', (chunk) => received.push(chunk))
    await new Promise((resolve) => socket.on('close', resolve))
    expect(Buffer.concat(received).toString()).toContain('FABRIC_PROTOCOL')
  })

  test.each([
    ['noise', Buffer.from('GET / HTTP/1.1\r\n\r\n')],
    ['a frame that is not hello', Buffer.from(encodeFrame(FrameType.renew))],
    ['a hello that is not JSON', Buffer.from(encodeFrame(FrameType.hello, Buffer.from('{')))],
  ])('%s in place of hello is answered with FABRIC_PROTOCOL and a close', async (_name, bytes) => {
    const broker = await testBroker()
    const socket = net.connect(broker.socketPath)
    socket.write(bytes)
    const received: Buffer[] = []
    socket.on('data', (chunk) => received.push(chunk))
    await new Promise((resolve) => socket.on('close', resolve))
    expect(Buffer.concat(received).toString()).toContain('FABRIC_PROTOCOL')
    expect(broker.state().consumers).toHaveLength(0)
  })

  test('one consumer more than maxConsumers is refused, and welcome once another has gone', async () => {
    const broker = await testBroker({ maxConsumers: 1 })
    const first = await FakeConsumer.connect(broker.socketPath)
    await expect(FakeConsumer.connect(broker.socketPath)).rejects.toMatchObject({
      code: 'FABRIC_CONSUMER_LIMIT',
    })
    first.close()
    await broker.untilState((state) => state.consumers.length === 0)
    await FakeConsumer.connect(broker.socketPath)
  })
})

describe('connection: a consumer that goes before its welcome', () => {
  const descriptors = () => readdirSync('/proc/self/fd').length
  const helloAndGone = (path: string, transport: 'ring' | 'socket') =>
    new Promise<void>((resolve) => {
      const socket = net.connect(path, () => {
        // The bytes leave at once; destroyed in the same turn, the broker reads them from nobody.
        socket.write(encodeHello(hello({ transport })))
        socket.destroy()
      })
      socket.on('close', () => resolve())
    })

  test.each(['ring', 'socket'] as const)(
    'is dropped alone, with its %s memory and descriptors',
    async (transport) => {
      const broker = await testBroker()
      const stays = await FakeConsumer.connect(broker.socketPath, { name: 'stays' })
      const { usedBytes } = broker.state().rings
      const before = descriptors()
      for (let i = 0; i < 20; i++) await helloAndGone(broker.socketPath, transport)
      await until(
        () =>
          broker.log.filter(({ msg }) => msg.startsWith('consumer gpu0') && msg.includes('died'))
            .length === 20,
      )
      await broker.untilState((state) => state.consumers.length === 1)
      expect(broker.state().rings.usedBytes).toBe(usedBytes)
      await until(() => descriptors() <= before)
      await broker.post('/v1/items', items(8))
      expect((await stays.nextBatch()).view.size).toBe(8)
    },
  )
})

describe('connection: results of a batch that never was', () => {
  test('S26: are dropped, counted and logged with FABRIC_LEASE_UNKNOWN; the consumer stays', async () => {
    const broker = await testBroker()
    const consumer = await FakeConsumer.connect(broker.socketPath)
    await broker.post('/v1/items', items(8))
    const batch = await consumer.nextBatch()
    consumer.take(batch)
    consumer.settle(batch, undefined, batch.view.brokerLife + 1n)
    await until(() => broker.log.some(({ code }) => code === 'FABRIC_LEASE_UNKNOWN'))
    const line = broker.log.find(({ code }) => code === 'FABRIC_LEASE_UNKNOWN')!
    expect(line).toMatchObject({ level: 40, consumer: 'gpu0', items: 8 })
    expect((await broker.get('/metrics')).text).toMatch(/fabric_results_late_total\S* 8/)
    expect(broker.state()).toMatchObject({ items: { leased: 8 }, consumers: [{ name: 'gpu0' }] })
  })
})

describe('connection: transport', () => {
  test('a consumer that asks for the socket gets it, with the reason', async () => {
    const broker = await testBroker()
    const { welcome } = await FakeConsumer.connect(broker.socketPath, { transport: 'socket' })
    expect(welcome).toMatchObject({ transport: 'socket', ring: null })
  })

  test.each([
    ['another ring ABI', { ringAbi: 999 }, {}, /ABI 999/],
    ['no ring on its platform', { ringAbi: null }, {}, /platform/],
    ['no room under ringBytesMax', {}, { ringBytesMax: 1024 }, /ringBytesMax/],
  ])(
    '%s falls back to the socket, and fails where a ring is demanded',
    async (_name, hello, flags, why) => {
      const broker = await testBroker(flags)
      const { welcome } = await FakeConsumer.connect(broker.socketPath, hello)
      expect(welcome.transport).toBe('socket')
      expect(welcome.transportReason).toMatch(why)
      await expect(
        FakeConsumer.connect(broker.socketPath, { ...hello, transport: 'ring' }),
      ).rejects.toMatchObject({ code: 'FABRIC_RING_UNAVAILABLE' })
      await broker.untilState((state) => state.consumers.length === 1)
    },
  )

  test('a ring grows to eight of the largest batches of the contract', async () => {
    const broker = await testBroker()
    const consumer = await FakeConsumer.connect(broker.socketPath, {
      contract: { batchSize: 256, tokens: 2 ** 18 },
    })
    expect(consumer.welcome.ring?.capacityBytes).toBe(16 * 2 ** 20)
    expect(broker.state().rings.usedBytes).toBe(16 * 2 ** 20)
    consumer.close()
    await broker.untilState((state) => state.rings.usedBytes === 0)
  })
})

describe('connection: death and reclaim', () => {
  test('S25: what a consumer held is given to the next, the batch it had taken included', async () => {
    const broker = await testBroker()
    const first = await FakeConsumer.connect(broker.socketPath)
    await broker.post('/v1/items', items(24))
    const batch = await first.nextBatch()
    first.take(batch)
    await broker.untilState((state) => state.items.leased === 24)
    first.close()
    await broker.untilState((state) => state.consumers.length === 0)
    expect(broker.state().items).toMatchObject({ leased: 0, waiting: 24, reclaimed: 24 })
    const second = await FakeConsumer.connect(broker.socketPath, { name: 'gpu1' })
    await second.work(() => broker.state().items.settled.completed === 24)
    const lines = (await broker.get('/v1/jobs/default/results')).text.trim().split('\n')
    const results = lines.map((line) => JSON.parse(line))
    expect(new Set(results.map(({ id }) => id)).size).toBe(24)
    // The batch it had taken, and the head of its channel, which it may have taken.
    expect(results.filter(({ attempts }) => attempts === 2)).toHaveLength(16)
  })

  test('S24: a consumer that renews nothing is closed with FABRIC_LEASE_EXPIRED', async () => {
    const broker = await testBroker({ leaseTimeoutMs: 100 })
    const consumer = await FakeConsumer.connect(broker.socketPath)
    await until(() => consumer.closed)
    expect(consumer.error?.code).toBe('FABRIC_LEASE_EXPIRED')
    expect(broker.state().consumers).toHaveLength(0)
    expect(broker.log.some(({ msg }) => msg.includes('died: lease_timeout'))).toBe(true)
  })

  test('a frame that only the broker sends ends the connection and reclaims its work', async () => {
    const broker = await testBroker()
    const consumer = await FakeConsumer.connect(broker.socketPath)
    await broker.post('/v1/items', items(8))
    await consumer.nextBatch()
    consumer.send(FrameType.batch)
    await until(() => consumer.closed)
    expect(consumer.error?.code).toBe('FABRIC_PROTOCOL')
    expect(broker.state().items).toMatchObject({ leased: 0, waiting: 8 })
  })

  test('a results message whose values lie outside ends the connection, not the broker', async () => {
    const broker = await testBroker()
    const consumer = await FakeConsumer.connect(broker.socketPath)
    consumer.send(FrameType.results, new Uint8Array(64).fill(255))
    await until(() => consumer.closed)
    expect(consumer.error?.code).toBe('FABRIC_PROTOCOL')
    expect((await broker.get('/livez')).status).toBe(200)
  })

  test('S23: results for places beyond the batch are dropped and the connection lives', async () => {
    const broker = await testBroker()
    const consumer = await FakeConsumer.connect(broker.socketPath)
    await broker.post('/v1/items', items(8))
    const batch = await consumer.nextBatch()
    consumer.take(batch)
    consumer.settle(batch, (index) => ({ index: index === 7 ? 2 ** 31 : index }))
    await broker.untilState((state) => state.items.settled.completed === 7)
    expect(broker.state().items.late).toBe(1)
    expect(consumer.closed).toBe(false)
  })
})

describe('connection: settlement', () => {
  test('S23, S28: one failed item does not touch its neighbours; a retry comes back', async () => {
    const broker = await testBroker({ retryDelayMs: 1, maxAttempts: 2 })
    const consumer = await FakeConsumer.connect(broker.socketPath)
    await broker.post('/v1/items', items(8))
    await broker.post('/v1/jobs/default/flush')
    const first = await consumer.nextBatch()
    consumer.take(first)
    const error = Buffer.from(
      JSON.stringify({ code: 'FABRIC_ITEM_FAILED', message: 'no such word' }),
    )
    consumer.settle(first, (index) => {
      if (index === 0) return { outcome: 1, encoding: 4, value: error }
      return index === 1 ? { outcome: 2, encoding: 4, value: error } : {}
    })
    const again = await consumer.nextBatch()
    expect(again.ids).toEqual([first.ids[1]])
    consumer.take(again)
    consumer.settle(again, () => ({ outcome: 2, encoding: 4, value: error }))
    await broker.untilState((state) => state.items.settled.failed === 2)
    const lines = (await broker.get('/v1/jobs/default/results')).text.trim().split('\n')
    const failed = lines.map((line) => JSON.parse(line)).filter(({ status }) => status === 'failed')
    expect(failed).toMatchObject([
      { id: first.ids[0], error: { code: 'FABRIC_ITEM_FAILED', message: 'no such word' } },
      { id: first.ids[1], attempts: 2, error: { code: 'FABRIC_MAX_ATTEMPTS' } },
    ])
    expect(failed[1].error.message).toContain('no such word')
  })

  test('a consumer that drains gives its channel back and may settle what it took', async () => {
    const broker = await testBroker()
    const consumer = await FakeConsumer.connect(broker.socketPath)
    await broker.post('/v1/items', items(24))
    const batch = await consumer.nextBatch()
    consumer.take(batch)
    await broker.untilState((state) => state.consumers[0].inFlight === 1)
    consumer.send(FrameType.drain)
    await broker.untilState((state) => state.items.leased === 8)
    expect(broker.state().consumers[0].state).toBe('draining')
    consumer.settle(batch)
    await broker.untilState((state) => state.items.settled.completed === 8)
    consumer.send(FrameType.bye)
    consumer.socket.end()
    await broker.untilState((state) => state.consumers.length === 0)
    expect(broker.log.some(({ msg }) => msg === 'consumer gpu0 left')).toBe(true)
  })
})

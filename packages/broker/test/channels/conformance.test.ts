// What every channel must do, run against each of them: real rings, real sockets, and the assembly
// that fills both. The bytes of a batch are the same whichever way it goes.
import { closeSync, openSync, writeSync } from 'node:fs'
import { encodeTaken, openBatch } from '@fabric/protocol'
import { describe, expect, test } from 'vitest'
import { items, type TestBroker, testBroker } from '../support/broker.ts'
import { type FakeBatch, FakeConsumer, type FakeHello } from '../support/fake-consumer.ts'
import { until } from '../support/until.ts'

const channels = [
  { via: 'ring', hello: { transport: 'ring' } },
  { via: 'socket', hello: { transport: 'socket' } },
] as const

const ragged = { contract: { layout: 'ragged' } } as const

async function connect(
  broker: TestBroker,
  hello: FakeHello,
  more: FakeHello = {},
): Promise<FakeConsumer> {
  return FakeConsumer.connect(broker.socketPath, { ...hello, ...more })
}

describe.each(channels)('channel by $via', ({ via, hello }) => {
  test('a batch arrives whole: tokens in rows, zeros behind them, ids, lengths', async () => {
    const broker = await testBroker()
    const consumer = await connect(broker, hello, { contract: { batchSize: 3, tokens: 24 } })
    await broker.post('/v1/items', [
      { id: 'x', tokens: [1, 2, 3] },
      { id: 'yé', tokens: [4] },
      { id: 'z', tokens: [5, 6, 7, 8, 9, 10, 11, 2147483647] },
    ])
    const batch = await consumer.nextBatch()
    expect(batch.via).toBe(via)
    expect(batch.ids).toEqual(['x', 'yé', 'z'])
    const { view } = batch
    expect(view).toMatchObject({ model: 0, size: 3, paddedLength: 8, tokenCount: 12, attempt: 1 })
    expect(view.brokerLife.toString(16).padStart(16, '0')).toBe(consumer.welcome.brokerLife)
    expect(Array.from(view.lengths)).toEqual([3, 1, 8])
    expect(Array.from(view.inputIds)).toEqual([
      ...[1, 2, 3, 0, 0, 0, 0, 0],
      ...[4, 0, 0, 0, 0, 0, 0, 0],
      ...[5, 6, 7, 8, 9, 10, 11, 2147483647],
    ])
    expect(view.payloads).toBeNull()
  })

  test('the ragged layout puts tokens one after another', async () => {
    const broker = await testBroker()
    const consumer = await connect(broker, hello, ragged)
    await broker.post('/v1/items', [
      { id: 'x', tokens: [1, 2, 3] },
      { id: 'p', length: 2, payload: 'AAAA' },
      { id: 'z', tokens: [4] },
    ])
    await broker.post('/v1/jobs/default/flush')
    const { view, ids } = await consumer.nextBatch()
    expect(view).toMatchObject({ layout: 'ragged', paddedLength: 0, tokenCount: 6 })
    expect(ids).toEqual(['x', 'p', 'z'])
    // The payload's item stands for two tokens and has none: zeros keep the offsets right.
    expect(Array.from(view.inputIds)).toEqual([1, 2, 3, 0, 0, 4])
    expect(Array.from(view.payloadEnds!)).toEqual([0, 3, 3])
  })

  test('batches travel in the order of dispatch', async () => {
    const broker = await testBroker()
    const consumer = await connect(broker, hello)
    await broker.post('/v1/items', items(200))
    const numbers: number[] = []
    const done = () => broker.state().items.settled.completed === 200
    while (!done()) {
      const batch = consumer.batches.shift()
      if (batch === undefined) {
        await new Promise((resolve) => setImmediate(resolve))
        continue
      }
      numbers.push(batch.view.batch)
      consumer.take(batch)
      consumer.settle(batch)
    }
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b))
    expect(numbers).toHaveLength(25)
  })

  test('thousands of batches keep every id and every token', async () => {
    const broker = await testBroker({ laneIdleMs: 600_000 })
    const consumer = await connect(broker, hello, { contract: { batchSize: 32, tokens: 2048 } })
    const sent = Array.from({ length: 20_000 }, (_, i) => ({
      id: `item-${i}`,
      tokens: Array.from({ length: 1 + ((i * 7919) % 60) }, (_, k) => i + k),
    }))
    for (let at = 0; at < sent.length; at += 5_000)
      await broker.post('/v1/items', sent.slice(at, at + 5_000))
    await broker.post('/v1/jobs/default/flush')
    const seen = new Set<string>()
    const check = ({ view, ids }: FakeBatch) =>
      ids.every((id, row) => {
        seen.add(id)
        const from = row * view.paddedLength
        const tokens = view.inputIds.subarray(from, from + view.lengths[row])
        const number = Number(id.slice(5))
        return (
          tokens.length === sent[number].tokens.length && tokens.every((t, k) => t === number + k)
        )
      })
    let wrong = 0
    while (broker.state().items.settled.completed < sent.length) {
      const batch = consumer.batches.shift()
      if (batch === undefined) {
        await new Promise((resolve) => setImmediate(resolve))
        continue
      }
      if (!check(batch)) wrong += 1
      consumer.take(batch)
      consumer.settle(batch)
    }
    expect(wrong).toBe(0)
    expect(seen.size).toBe(sent.length)
    expect(broker.state().items).toMatchObject({ waiting: 0, leased: 0 })
  })

  test('a consumer that reads nothing stops dispatch at channelDepth and delays nobody else', async () => {
    const broker = await testBroker()
    const stuck = await connect(broker, hello, { name: 'stuck' })
    stuck.socket.pause()
    await broker.post('/v1/items', items(80))
    await broker.untilState((state) => state.items.leased === 16)
    const other = await connect(broker, hello, { name: 'other' })
    await other.work(() => broker.state().items.settled.completed === 64)
    const [{ channelBatches }] = broker.state().consumers
    expect(channelBatches).toBe(2)
  })
})

test('the bytes of a batch are the same by ring and by socket', async () => {
  const bytesBy = async (hello: FakeHello) => {
    const broker = await testBroker()
    const consumer = await FakeConsumer.connect(broker.socketPath, hello)
    await broker.post('/v1/items', [...items(7, 5), { id: 'p', length: 3, payload: 'AAECAwQ=' }])
    const { bytes } = await consumer.nextBatch()
    const same = bytes.slice()
    same.fill(0, 16, 24) // the broker's life differs
    return same
  }
  expect(await bytesBy({ transport: 'ring' })).toEqual(await bytesBy({ transport: 'socket' }))
})

describe('a ring with less room than it needs', () => {
  test('a batch larger than the ring takes goes by the socket, and status says so', async () => {
    const broker = await testBroker({ maxItemBytes: 2 ** 20 })
    const consumer = await FakeConsumer.connect(broker.socketPath)
    const payload = Buffer.alloc(600_000, 7).toString('base64')
    await broker.post('/v1/items', [{ id: 'big', payload, length: 8 }, ...items(7)])
    const batch = await consumer.nextBatch()
    expect(batch.via).toBe('socket')
    expect(batch.view.payloads?.byteLength).toBe(600_000)
    consumer.take(batch)
    consumer.settle(batch)
    await broker.post('/v1/items', items(8, 8, 'b'))
    expect((await consumer.nextBatch()).via).toBe('ring')
    expect(broker.state().consumers[0]).toMatchObject({ transport: 'ring', viaSocket: 1 })
  })

  test('a consumer that settles but never releases gets its batches by the socket, until it does', async () => {
    const broker = await testBroker()
    const consumer = await FakeConsumer.connect(broker.socketPath)
    const payload = Buffer.alloc(400_000, 7).toString('base64')
    const kept: FakeBatch[] = []
    for (let i = 0; kept.at(-1)?.via !== 'socket'; i++) {
      await broker.post('/v1/items', [
        { id: `big${i}`, payload, length: 8 },
        ...items(7, 8, `${i}-`),
      ])
      const batch = await consumer.nextBatch()
      kept.push(batch)
      consumer.take(batch)
      consumer.settle({ ...batch, release: () => {} })
    }
    expect(kept.length).toBeGreaterThan(3)
    expect(broker.state().consumers[0].ring?.fulls).toBe(1)
    for (const batch of kept) batch.release()
    await broker.post('/v1/items', items(8, 8, 'after'))
    expect((await consumer.nextBatch()).via).toBe('ring')
  })
})

test('a consumer that lies about its read position loses its ring and its work, not the broker', async () => {
  const broker = await testBroker()
  let readerPage = -1
  const liar = await FakeConsumer.connect(broker.socketPath, {}, (descriptors) => {
    readerPage = openSync(`/proc/self/fd/${descriptors[2]}`, 'r+')
  })
  const lie = new Uint8Array(8).fill(0x40) // aligned, and far beyond what was committed
  const payload = Buffer.alloc(400_000, 7).toString('base64')
  for (let i = 0; !liar.closed; i++) {
    await broker.post('/v1/items', [{ id: `big${i}`, payload, length: 8 }, ...items(7, 8, `${i}-`)])
    const batch = liar.batches.shift()
    if (batch === undefined) continue
    writeSync(readerPage, lie, 0, 8, 0)
    liar.settle({ ...batch, release: () => {} })
  }
  closeSync(readerPage)
  expect(liar.error?.message).toMatch(/the ring is lost/)
  await broker.untilState((state) => state.consumers.length === 0)
  const { leased, waiting } = broker.state().items
  expect(leased).toBe(0)
  const honest = await FakeConsumer.connect(broker.socketPath, { transport: 'socket' })
  await broker.post('/v1/jobs/default/flush')
  await honest.work(() => broker.state().items.waiting + broker.state().items.leased === 0)
  expect(waiting).toBeGreaterThan(0)
})

test('a consumer that takes more than it may is cut off and its work reclaimed (I6)', async () => {
  const broker = await testBroker()
  const consumer = await FakeConsumer.connect(broker.socketPath)
  await broker.post('/v1/items', items(16))
  const [first, second] = [await consumer.nextBatch(), await consumer.nextBatch()]
  consumer.socket.write(encodeTaken(openBatch(first.bytes.buffer as ArrayBuffer).batch))
  consumer.take(second)
  await until(() => consumer.closed)
  expect(broker.state().items).toMatchObject({ leased: 0, waiting: 16 })
})

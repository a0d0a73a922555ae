// Memory mode with a spill, through real HTTP and a real store: what memory has no room for waits on
// disk, and promises nothing beyond the process.
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { loadConfig } from '../../src/index.ts'
import { openStore } from '../../src/storage/open.ts'
import { items, type TestBroker, temporaryFolder, testBroker } from '../support/broker.ts'
import { FakeConsumer } from '../support/fake-consumer.ts'

const ENOSPC = 28

const idsOf = (text: string) =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line).id as string)
    .sort()

async function work(broker: TestBroker, settled: number): Promise<void> {
  const consumer = await FakeConsumer.connect(broker.socketPath)
  await consumer.work(() => broker.state().items.settled.completed >= settled)
  consumer.close()
}

const spillOf = (broker: TestBroker) => {
  const { storage } = broker.state()
  return storage.mode === 'memory' ? storage.spill : null
}

describe('a spill', () => {
  test('takes what memory has no room for, and each item has one result', async () => {
    const spillDir = temporaryFolder()
    const broker = await testBroker({ spillDir, spillAboveItems: 30 })
    expect((await broker.get('/info')).body.storage).toEqual({ mode: 'memory', durable: false })
    await broker.post('/v1/jobs', { id: 'j' })
    const wanted: string[] = []
    for (const prefix of ['a', 'b', 'c', 'd']) {
      const list = items(20, 8, prefix)
      wanted.push(...list.map(({ id }) => id))
      expect((await broker.post('/v1/items?job=j', list)).body).toMatchObject({ accepted: 20 })
    }
    // A request is one block: the second is above the mark with its first item, and goes to memory.
    const { queue, storage } = broker.state()
    expect(queue.staging.items + queue.lane.items).toBe(40)
    expect(queue.disk.items).toBe(40)
    expect(storage).toMatchObject({ mode: 'memory', durable: false, spill: { spillDir } })
    await broker.post('/v1/jobs/j/flush')
    await work(broker, 80)
    const results = await broker.get('/v1/jobs/j/results?follow=true')
    expect(idsOf(results.text)).toEqual(wanted.sort())
    expect((await broker.get('/v1/jobs/j')).body).toMatchObject({ state: 'ended', accepted: 80 })
  })

  test('ends when all that was spilled has come back: new items wait in memory again', async () => {
    const broker = await testBroker({ spillDir: temporaryFolder(), spillAboveItems: 10 })
    for (const prefix of ['a', 'b']) await broker.post('/v1/items', items(10, 8, prefix))
    expect(broker.state().queue.disk.items).toBe(10)
    await broker.post('/v1/jobs/default/flush')
    await work(broker, 20)
    await broker.post('/v1/items', items(5, 8, 'c'))
    const { queue, items: counts } = broker.state()
    expect({ waiting: counts.waiting, onDisk: queue.disk.items }).toEqual({ waiting: 5, onDisk: 0 })
  })

  test('S36: an id is known whether its item was in memory or spilled', async () => {
    const broker = await testBroker({ spillDir: temporaryFolder(), spillAboveItems: 10 })
    for (const prefix of ['a', 'b']) await broker.post('/v1/items', items(10, 8, prefix))
    for (const prefix of ['a', 'b']) {
      const { body } = await broker.post('/v1/items', items(10, 8, prefix))
      expect(body).toMatchObject({ accepted: 0, duplicate: 10 })
    }
    await broker.post('/v1/jobs/default/flush')
    await work(broker, 20)
    const { body } = await broker.post('/v1/items', items(10, 8, 'b'))
    expect(body).toMatchObject({ accepted: 0, duplicate: 10 })
  })

  test('an item of it is found by its id, and cancelled', async () => {
    const broker = await testBroker({ spillDir: temporaryFolder(), spillAboveItems: 10 })
    for (const prefix of ['a', 'b']) await broker.post('/v1/items', items(10, 8, prefix))
    expect((await broker.get('/v1/items/b3')).body).toMatchObject({ state: 'on_disk' })
    const { body } = await broker.post('/v1/items/cancel', { job: 'default', ids: ['a3', 'b3'] })
    expect(body.cancelled).toEqual(['a3', 'b3'])
    expect(broker.state().items).toMatchObject({ waiting: 18, settled: { cancelled: 2 } })
  })

  test('keeps nothing: what it held is gone with the broker, and nothing else in the folder is', async () => {
    const spillDir = temporaryFolder()
    const data = join(spillDir, 'fabric-spill')
    writeFileSync(join(spillDir, 'not-ours'), 'x')
    mkdirSync(data)
    writeFileSync(join(data, 'fabric.mdb'), 'left by a broker that was killed')
    const first = await testBroker({ spillDir, spillAboveItems: 1 })
    await first.post('/v1/jobs', { id: 'j' })
    for (const prefix of ['a', 'b']) await first.post('/v1/items?job=j', items(4, 8, prefix))
    await first.stop()
    expect(readdirSync(spillDir).sort()).toEqual(['fabric-spill', 'not-ours'])
    expect(readdirSync(data)).toEqual([])
    expect(first.log.some(({ msg }) => msg.startsWith('drained; 8 items are lost'))).toBe(true)
    const second = await testBroker({ spillDir, spillAboveItems: 1 })
    expect((await second.get('/v1/jobs/j')).status).toBe(404)
    expect(second.state().items.waiting).toBe(0)
  })

  test('is of one broker at a time', async () => {
    const spillDir = temporaryFolder()
    await testBroker({ spillDir })
    await expect(testBroker({ spillDir })).rejects.toMatchObject({ code: 'FABRIC_STORE_IN_USE' })
  })

  test('makes nothing durable: an item that must be is refused', async () => {
    const broker = await testBroker({ spillDir: temporaryFolder() })
    expect((await broker.post('/v1/items?durable=true', items(1))).status).toBe(400)
  })

  test('on a full disk refuses what memory has no room for, and says so', async () => {
    const faults = new Int32Array(new SharedArrayBuffer(8))
    const broker = await testBroker(
      { spillDir: temporaryFolder(), spillAboveItems: 10 },
      { openStore: (dataDir, options) => openStore(dataDir, { ...options, faults }) },
    )
    await broker.post('/v1/items', items(10))
    Atomics.store(faults, 0, ENOSPC)
    const refused = await broker.post('/v1/items', items(10, 8, 'b'))
    expect(refused.status).toBe(507)
    expect(refused.body.error).toMatchObject({ code: 'FABRIC_DISK_FULL' })
    expect(spillOf(broker)?.health).toMatchObject({ state: 'degraded', code: 'FABRIC_DISK_FULL' })
    expect((await broker.get('/readyz')).body.reasons.join()).toMatch(/no more than memory holds/)
    Atomics.store(faults, 0, 0)
    await broker.untilState(() => spillOf(broker)?.health.state === 'ok')
    const again = await broker.post('/v1/items', items(10, 8, 'b'))
    expect(again.body).toMatchObject({ accepted: 10 })
  })
})

describe('the configuration of a spill', () => {
  const refused = (flags: Record<string, unknown>) => () => loadConfig({ flags })

  test('what may wait is bounded as in disk mode, what waits in memory as in memory mode', () => {
    const plain = loadConfig({})
    const config = loadConfig({ flags: { spillDir: '/tmp/s' } })
    const onDisk = loadConfig({ flags: { dataDir: '/tmp/d' } })
    expect(config.mode).toBe('memory')
    expect(config.maxQueuedTokens).toBe(onDisk.maxQueuedTokens)
    expect(config.spillAboveTokens).toBe(plain.maxQueuedTokens)
    expect(config.spillAboveItems).toBe(plain.maxQueuedItems)
  })

  test.each([
    [{ spillDir: '/tmp/s', dataDir: '/tmp/d' }, /spillDir: dataDir is set/],
    [{ spillAboveItems: 5 }, /spillAboveItems: it goes with spillDir/],
    [
      { spillDir: '/tmp/s', spillAboveTokens: 500, maxQueuedTokens: 400 },
      /spillAboveTokens: 500 can never wait, maxQueuedTokens is 400/,
    ],
  ])('%j is refused', (flags, message) => {
    expect(refused(flags)).toThrow(message)
  })
})

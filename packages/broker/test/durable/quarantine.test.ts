// S27 in disk mode: the quarantine outlives the broker.
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type TestBroker, temporaryFolder, testBroker } from '../support/broker.ts'
import { FakeConsumer } from '../support/fake-consumer.ts'
import { until } from '../support/until.ts'

const POISON = { id: 'poison', tokens: [1, 2, 3] }

/** Kills one consumer after the other with it, until the item is in quarantine so many times. */
async function poison(broker: TestBroker, times = 1): Promise<void> {
  for (let i = 0; broker.state().items.settled.quarantined < times; i++) {
    const consumer = await FakeConsumer.connect(broker.socketPath, { name: `mortal-${i}` })
    const batch = await until(() => {
      if (broker.state().items.settled.quarantined === times) return 'over'
      return consumer.batches.shift() ?? null
    })
    if (batch === 'over') return
    consumer.take(batch)
    consumer.close()
    await broker.untilState((state) => state.items.leased === 0)
  }
}

async function poisoned(dataDir: string): Promise<TestBroker> {
  const broker = await testBroker({ dataDir })
  await broker.post('/v1/jobs', { id: 'j' })
  await broker.post('/v1/items?job=j', [POISON])
  await broker.post('/v1/jobs/j/flush')
  await poison(broker)
  await until(async () => (await broker.get('/v1/jobs/j')).body.state === 'ended')
  return broker
}

const filesOf = (dataDir: string) => {
  const folder = join(dataDir, 'quarantined')
  return existsSync(folder) ? readdirSync(folder) : []
}

const statusesOf = async (broker: TestBroker) => {
  const { text } = await broker.get('/v1/jobs/j/results?follow=true')
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).status)
}

test('its items are listed after a restart with their evidence, and can be replayed', async () => {
  const dataDir = join(temporaryFolder(), 'data')
  const first = await poisoned(dataDir)
  const before = (await first.get('/v1/quarantine')).body.items
  await first.stop()

  const broker = await testBroker({ dataDir })
  const { items } = (await broker.get('/v1/quarantine')).body
  expect(items).toMatchObject([{ job: 'j', id: 'poison', length: 3 }])
  expect(items[0].deaths.map(({ consumer }: { consumer: string }) => consumer)).toEqual(
    before[0].deaths.map(({ consumer }: { consumer: string }) => consumer),
  )
  expect(
    Math.abs(Date.parse(items[0].quarantinedAt) - Date.parse(before[0].quarantinedAt)),
  ).toBeLessThan(1000)
  expect((await broker.post('/v1/quarantine', { job: 'j', ids: ['poison'] })).body).toEqual({
    replayed: 1,
  })
  const consumer = await FakeConsumer.connect(broker.socketPath)
  await consumer.work(async () => (await broker.get('/v1/jobs/j')).body.state === 'ended')
  expect(await statusesOf(broker)).toEqual(['quarantined', 'completed'])
  await until(() => filesOf(dataDir).length === 0)
})

test('an item that was replayed and not done when the broker ended is in quarantine again', async () => {
  const dataDir = join(temporaryFolder(), 'data')
  const first = await poisoned(dataDir)
  await first.post('/v1/quarantine', { all: true })
  expect((await first.get('/v1/quarantine')).body.items).toEqual([])
  await first.stop()
  const broker = await testBroker({ dataDir })
  expect((await broker.get('/v1/quarantine')).body.items).toMatchObject([{ id: 'poison' }])
})

test('an item that is quarantined once more after its replay has one entry, the later one', async () => {
  const dataDir = join(temporaryFolder(), 'data')
  const first = await poisoned(dataDir)
  await first.post('/v1/quarantine', { all: true })
  await poison(first, 2)
  await until(() => filesOf(dataDir).join() === '1-2.json')
  await first.stop()
  const broker = await testBroker({ dataDir })
  expect((await broker.get('/v1/quarantine')).body.items).toMatchObject([{ id: 'poison' }])
})

test.each([
  ['is deleted', '/v1/quarantine', { all: true }],
  ['is of a job that is deleted', '/v1/jobs/j', undefined],
])('an item that %s leaves no file', async (_, path, body) => {
  const dataDir = join(temporaryFolder(), 'data')
  const broker = await poisoned(dataDir)
  expect(filesOf(dataDir)).toEqual(['1-1.json'])
  const asJson = { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
  await fetch(broker.httpUrl + path, {
    method: 'DELETE',
    ...(body === undefined ? {} : asJson),
  })
  await until(() => filesOf(dataDir).length === 0)
})

test('a file that cannot be read is told, stays, and keeps nothing else back', async () => {
  const dataDir = join(temporaryFolder(), 'data')
  const first = await poisoned(dataDir)
  await first.stop()
  writeFileSync(join(dataDir, 'quarantined', '1-9.json'), '{')
  const broker = await testBroker({ dataDir })
  expect((await broker.get('/v1/quarantine')).body.items).toHaveLength(1)
  expect(broker.log.some(({ msg }) => msg.includes('1-9.json'))).toBe(true)
  expect(filesOf(dataDir).sort()).toEqual(['1-1.json', '1-9.json'])
})

test('an entry of an item that is unsettled, since its end was not kept, goes: the item runs again', async () => {
  const dataDir = join(temporaryFolder(), 'data')
  const first = await poisoned(dataDir)
  await first.post('/v1/items?job=j', [{ id: 'other', tokens: [4] }])
  await first.stop()
  // As if the broker had died between the two: the second item has number 2.
  const entry = { job: 1, item: 2, model: 0, length: 1, id: 'other', tokens: [4], payload: '' }
  const rest = { attempts: 0, deliveries: 2, acceptedAtMs: 0, quarantinedAtMs: 0, deaths: [] }
  writeFileSync(join(dataDir, 'quarantined', '1-2.json'), JSON.stringify({ ...entry, ...rest }))
  const broker = await testBroker({ dataDir })
  expect((await broker.get('/v1/quarantine')).body.items).toMatchObject([{ id: 'poison' }])
  expect(broker.state().items.waiting).toBe(1)
  expect(filesOf(dataDir)).toEqual(['1-1.json'])
})

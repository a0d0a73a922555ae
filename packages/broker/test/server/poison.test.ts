// S27 and S28 with real processes: an item that kills whoever takes it, a device that is too small, a
// handler that gives all back, a consumer that dies of nothing.
import { expect, test } from 'vitest'
import { items, testBroker } from '../support/broker.ts'
import { spawnConsumer, type TestProcess } from '../support/processes.ts'
import { until } from '../support/until.ts'

type Item = { id: string; tokens: number[] }

/** Starts consumers of these names again whenever they die, until `stop`. */
function keepAlive(socketPath: string, mode: 'mortal' | 'stillborn', ...names: string[]) {
  const kept = { deaths: 0, stop: async () => {} }
  let over = false
  const live = async (name: string) => {
    for (;;) {
      const consumer: TestProcess = spawnConsumer(socketPath, { name, mode })
      await consumer.exited
      if (over) return
      kept.deaths += 1
    }
  }
  const lives = names.map(live)
  kept.stop = async () => {
    over = true
    await Promise.all(lives)
  }
  return kept
}

test('one poison item among 1,000: the others complete, and it is quarantined with its evidence', async () => {
  const broker = await testBroker()
  const consumers = keepAlive(broker.socketPath, 'mortal', 'gpu0', 'gpu1')
  await broker.untilState((state) => state.consumers.length === 2)
  const good = items(999) as Item[]
  await broker.post('/v1/items', [
    ...good.slice(0, 500),
    { id: 'poison', tokens: [1] },
    ...good.slice(500),
  ])
  await broker.post('/v1/jobs/default/flush')
  await broker.untilState(
    ({ items: { settled } }) => settled.completed + settled.quarantined === 1000,
  )
  // Its first batch held 8 items at most.
  expect(consumers.deaths).toBeLessThanOrEqual(Math.ceil(Math.log2(8)) + 3)
  expect(broker.state().items.settled).toMatchObject({ completed: 999, quarantined: 1, failed: 0 })
  const { body } = await broker.get('/v1/quarantine')
  expect(body.items).toMatchObject([{ job: 'default', id: 'poison', length: 1 }])
  expect(body.items[0].deaths.length).toBe(consumers.deaths)
  expect((await broker.get('/metrics')).text).toMatch(/^fabric_quarantined_items 1$/m)

  const deleted = await fetch(`${broker.httpUrl}/v1/quarantine`, {
    method: 'DELETE',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ job: 'default', ids: ['poison'] }),
  })
  expect(await deleted.json()).toEqual({ deleted: 1 })
  await until(async () => /^fabric_quarantined_items 0$/m.test((await broker.get('/metrics')).text))
  const stopped = consumers.stop()
  await broker.stop()
  await stopped
})

test('a quarantined item that is replayed is done like a new one', async () => {
  const broker = await testBroker()
  await broker.post('/v1/items', [{ id: 'poison', tokens: [1] }])
  await broker.post('/v1/jobs/default/flush')
  for (const name of ['gpu0', 'gpu1', 'gpu2']) {
    await spawnConsumer(broker.socketPath, { name, mode: 'mortal' }).exited
  }
  await broker.untilState(({ items: { settled } }) => settled.quarantined === 1)
  expect((await broker.post('/v1/quarantine', { ids: ['other'] })).status).toBe(404)
  expect((await broker.post('/v1/quarantine', {})).status).toBe(400)
  expect((await broker.post('/v1/quarantine', { ids: ['poison'] })).body).toEqual({ replayed: 1 })
  expect((await broker.get('/v1/jobs/default')).body).toMatchObject({
    state: 'flushed',
    waiting: 1,
  })
  spawnConsumer(broker.socketPath, { name: 'gpu3' })
  await until(async () => (await broker.get('/v1/jobs/default')).body.state === 'ended')
  const { text } = await broker.get('/v1/jobs/default/results')
  const statuses = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).status)
  expect(statuses).toEqual(['quarantined', 'completed'])
})

test('a consumer that is short of memory gets batches of half the size, and all complete', async () => {
  const broker = await testBroker()
  spawnConsumer(broker.socketPath, { mode: 'small' })
  await broker.untilState((state) => state.consumers.length === 1)
  await broker.post('/v1/items', items(100))
  await broker.post('/v1/jobs/default/flush')
  await broker.untilState(({ items: { settled } }) => settled.completed === 100)
  const { text } = await broker.get('/v1/jobs/default/results')
  expect(text.trim().split('\n').length).toBe(100)
})

test('a handler that nacks everything: its items end after maxDeliveries, and its loop with them', async () => {
  const broker = await testBroker({ maxDeliveries: 3, retryDelayMs: 1 })
  spawnConsumer(broker.socketPath, { mode: 'nack' })
  await broker.untilState((state) => state.consumers.length === 1)
  await broker.post('/v1/items', items(40))
  await broker.post('/v1/jobs/default/flush')
  await broker.untilState(({ items: { settled } }) => settled.failed === 40)
  // One batch for each delivery of each item, at the most.
  expect(broker.state().batches.count).toBeLessThanOrEqual(3 * 40)
  expect(broker.state().items).toMatchObject({ waiting: 0, leased: 0 })
})

test('a handler that nacks everything: once another works in its place, all complete', async () => {
  const broker = await testBroker({ retryDelayMs: 1 })
  const nacking = spawnConsumer(broker.socketPath, { mode: 'nack' })
  await broker.untilState((state) => state.consumers.length === 1)
  await broker.post('/v1/items', items(200))
  await broker.post('/v1/jobs/default/flush')
  await until(() => nacking.output.split('taken').length > 10)
  nacking.kill('SIGKILL')
  spawnConsumer(broker.socketPath, { name: 'gpu1' })
  await broker.untilState(({ items: { settled } }) => settled.completed === 200)
  expect(broker.state().items.settled).toMatchObject({ failed: 0, quarantined: 0 })
})

test('a consumer that dies before it takes anything: no item is blamed, and all complete', async () => {
  // A lone suspect waits so long for another consumer than the one that died with it.
  const broker = await testBroker({ leaseTimeoutMs: 600_000 })
  const consumers = keepAlive(broker.socketPath, 'stillborn', 'gpu0')
  await broker.post('/v1/items', items(200))
  await broker.post('/v1/jobs/default/flush')
  // Often enough that an item that it died alone with would be blamed.
  await until(() => consumers.deaths > Math.ceil(Math.log2(8)) + 3)
  spawnConsumer(broker.socketPath, { name: 'gpu1' })
  await broker.untilState(
    ({ items: { settled } }) => settled.completed + settled.quarantined === 200,
  )
  expect(broker.state().items.settled).toMatchObject({ completed: 200, failed: 0, quarantined: 0 })
  const stopped = consumers.stop()
  await broker.stop()
  await stopped
})

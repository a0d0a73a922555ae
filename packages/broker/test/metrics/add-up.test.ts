// One run with deaths, a quarantine and a cleanup: the counters of /metrics agree with each other.
import { expect, test, vi } from 'vitest'
import { items, type TestBroker, testBroker } from '../support/broker.ts'
import { FakeConsumer } from '../support/fake-consumer.ts'

/** A condition is looked at so often, and given up after a minute. */
const WAIT = { interval: 1, timeout: 60_000 }
const ITEMS = 60

/** Sums the samples of a metric, of all labels or of one. */
async function reader(broker: TestBroker): Promise<(name: string, label?: string) => number> {
  const lines = (await broker.get('/metrics')).text.split('\n')
  return (name, label = '') =>
    lines
      .filter((line) => line.startsWith(`fabric_${name} `) || line.startsWith(`fabric_${name}{`))
      .filter((line) => line.includes(label))
      .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
}

const isOver = (broker: TestBroker) => {
  const { settled } = broker.state().items
  return settled.completed + settled.quarantined === ITEMS
}

/** Works until it takes the poison item, of which it dies. */
async function mortal(broker: TestBroker, name: string): Promise<void> {
  const consumer = await FakeConsumer.connect(broker.socketPath, { name })
  while (!isOver(broker)) {
    await vi.waitUntil(() => isOver(broker) || consumer.batches.length > 0, WAIT)
    const batch = consumer.batches.shift()
    if (batch === undefined) break
    consumer.take(batch)
    if (batch.ids.includes('poison')) {
      consumer.close()
      await broker.untilState(({ consumers }) => !consumers.some((each) => each.name === name))
      return
    }
    consumer.settle(batch)
  }
  consumer.close()
}

test('every item that was accepted ended once, and every one that was sent ended or came back', async () => {
  const broker = await testBroker()
  const list = [...items(ITEMS - 1, 8), { id: 'poison', tokens: [1, 2, 3, 4, 5, 6, 7, 8] }]
  await broker.post('/v1/items', list)
  await broker.post('/v1/jobs/default/flush')
  const lives = async (name: string) => {
    for (let life = 0; !isOver(broker); life++) await mortal(broker, `${name}-${life}`)
  }
  await Promise.all([lives('a'), lives('b')])
  await broker.untilState((state) => state.items.leased + state.items.waiting === 0)

  const read = await reader(broker)
  expect(read('items_submitted_total')).toBe(ITEMS)
  expect(read('items_settled_total')).toBe(ITEMS)
  expect(read('items_settled_total', '"quarantined"')).toBe(1)
  expect(read('quarantined_items')).toBe(1)
  const sent = read('batch_items_sum')
  const reclaimed = read('reclaimed_items_total')
  expect(reclaimed).toBeGreaterThan(0)
  // What is sent is done, comes back, or, at the last death of all, is quarantined.
  expect(sent).toBe(ITEMS + reclaimed)
  expect(read('item_queue_seconds_count')).toBe(sent)
  const batches = read('batch_items_count')
  for (const name of ['batch_source_total', 'batch_closed_total', 'batch_assembly_seconds_count'])
    expect([name, read(name)]).toEqual([name, batches])
  expect(read('batch_actual_tokens_total')).toBe(8 * sent)
  expect(read('cleanup_entries_total')).toBeGreaterThan(0)
  expect(read('cleanup_items_total')).toBeLessThanOrEqual(sent)
  expect(read('cleanup_batches_total')).toBeLessThanOrEqual(batches)
  expect(read('queue_items')).toBe(0)
})

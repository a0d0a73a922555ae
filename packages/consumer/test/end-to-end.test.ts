// The consumer and the broker together: items go in by HTTP, results come out.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Batch, Consumer, type ConsumerOptions, ItemError } from '@fabric/consumer'
import { writeTinyModelDir } from '@fabric/encoder-onnx'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { RealBroker } from './support/broker.js'
import { gate } from './support/changes.js'
import { fabricConsumer, Process } from './support/process.js'

const root = mkdtempSync(join(tmpdir(), 'end-to-end-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const CONTRACT = { batchSize: 8, tokens: 512, inputLength: 64, model: 1 }
const NUMBERS = ['--batch-size', '8', '--tokens', '512', '--input-length', '64', '--model', '1']

/** Ragged items whose first token is their number. */
const items = (count: number) =>
  Array.from({ length: count }, (_, i) => ({
    id: `item-${i}`,
    tokens: [i + 1, ...Array((i * 13) % 60).fill(7)],
  }))

function connect(broker: RealBroker, options: Partial<ConsumerOptions> = {}): Consumer {
  const consumer = new Consumer({ broker: broker.address, ...CONTRACT, ...options })
  onTestFinished(() => consumer.drain())
  return consumer
}

const firstTokens = (batch: Batch) =>
  Array.from({ length: batch.size }, (_, i) => {
    const start = batch.offsets === null ? i * batch.paddedLength : batch.offsets[i]
    return { id: batch.itemIds[i], first: batch.inputIds[start], length: batch.lengths[i] }
  })

describe.each([
  ['ring', 'padded'],
  ['ring', 'ragged'],
  ['socket', 'padded'],
  ['socket', 'ragged'],
] as const)('end to end by the %s, %s', (transport, layout) => {
  test('every item comes back once, with its own tokens', async () => {
    const broker = await RealBroker.start()
    const consumer = connect(broker, { transport, layout })
    void consumer.run(firstTokens)
    const sent = items(300)
    const results = await broker.runJob('job', sent)
    expect(results.size).toBe(300)
    for (const [i, { id, tokens }] of sent.entries()) {
      const { status, result, attempts } = results.get(id)!
      expect({ status, result, attempts }).toEqual({
        status: 'completed',
        result: { id, first: i + 1, length: tokens.length },
        attempts: 1,
      })
    }
    expect(consumer.status).toMatchObject({ transport, items: 300 })
    expect(broker.consumers[0]).toMatchObject({ transport })
  })
})

describe('end to end', () => {
  test('one bad item fails alone; one that asks for a retry comes again', async () => {
    const broker = await RealBroker.start({ retryDelayMs: 1 })
    const seen = new Map<string, number>()
    void connect(broker).run((batch) =>
      batch.itemIds.map((id) => {
        seen.set(id, (seen.get(id) ?? 0) + 1)
        if (id === 'item-3') return new ItemError('never', { code: 'FABRIC_ITEM_MALFORMED' })
        if (id === 'item-5' && seen.get(id) === 1) return new ItemError('later', { retry: true })
        return id
      }),
    )
    const results = await broker.runJob('job', items(20))
    expect(results.get('item-3')).toMatchObject({
      status: 'failed',
      error: { code: 'FABRIC_ITEM_MALFORMED', message: 'never' },
    })
    expect(results.get('item-5')).toMatchObject({ status: 'completed', attempts: 2 })
    const completed = [...results.values()].filter(({ status }) => status === 'completed')
    expect(completed).toHaveLength(19)
  })

  test('a handler that throws once loses nothing', async () => {
    const broker = await RealBroker.start({ retryDelayMs: 1 })
    let calls = 0
    void connect(broker).run((batch) => {
      calls += 1
      if (calls === 1) throw new Error('a hiccup')
      return batch.itemIds
    })
    const results = await broker.runJob('job', items(20))
    expect([...results.values()].filter(({ status }) => status === 'completed')).toHaveLength(20)
  })

  test('a handler that blocks for longer than the lease keeps its lease', async () => {
    // Long enough that a busy machine does not let the broker itself be late for its timer.
    const leaseTimeoutMs = 2_000
    const broker = await RealBroker.start({ leaseTimeoutMs })
    const script = fileURLToPath(new URL('fixtures/blocking-consumer.mjs', import.meta.url))
    const consumer = new Process(script, [broker.address])
    await broker.submit('job', items(1))
    await consumer.said('blocked in batch')
    // The lease's own time must pass: there is no event for a lease that is kept.
    await new Promise((resolve) => setTimeout(resolve, 2.2 * leaseTimeoutMs))
    expect(broker.consumers).toHaveLength(1)
    consumer.write('\n')
    const results = await broker.results('job')
    expect(results.get('item-0')).toMatchObject({ status: 'completed', attempts: 1 })
  })

  test('a consumer that is killed with a batch in hand loses nothing: another one does its work', async () => {
    const broker = await RealBroker.start()
    const script = fileURLToPath(new URL('fixtures/blocking-consumer.mjs', import.meta.url))
    const victim = new Process(script, [broker.address])
    await broker.submit('job', items(40))
    await victim.said('blocked in batch')
    victim.kill('SIGKILL')
    void connect(broker).run((batch) => batch.itemIds)
    const results = await broker.results('job')
    expect([...results.values()].filter(({ status }) => status === 'completed')).toHaveLength(40)
  })

  test('a consumer that drains gives back what waits for it, and another one does it', async () => {
    const broker = await RealBroker.start()
    const { promise, open } = gate()
    const { promise: begun, open: begin } = gate()
    const first = connect(broker)
    const running = first.run(async (batch) => {
      begin()
      await promise
      return batch.itemIds
    })
    await broker.submit('job', items(100))
    await begun
    const draining = first.drain()
    open()
    await Promise.all([draining, running])
    expect(first.status.batches).toBe(1)
    void connect(broker).run((batch) => batch.itemIds)
    const results = await broker.results('job')
    expect(results.size).toBe(100)
    expect([...results.values()].every(({ attempts }) => attempts === 1)).toBe(true)
  })

  test('a broker that ends is left, and the next one on its socket is found', async () => {
    const first = await RealBroker.start()
    const consumer = connect(first)
    void consumer.run((batch) => batch.itemIds)
    expect((await first.runJob('job', items(10))).size).toBe(10)
    const lost = new Promise((resolve) => consumer.once('disconnected', resolve))
    await first.stop()
    await lost
    const second = await RealBroker.start({}, first.socketPath)
    expect((await second.runJob('job', items(10))).size).toBe(10)
  })

  test('the command embeds with a tiny model: an item has one embedding, whoever its neighbours', async () => {
    const broker = await RealBroker.start()
    const modelDir = join(root, 'model')
    writeTinyModelDir(modelDir, 1)
    const consumer = fabricConsumer([
      ...['--broker', broker.address, '--model-dir', modelDir, '--device', 'cpu', ...NUMBERS],
    ])
    const together = await broker.runJob('together', items(100))
    for (const i of [0, 17, 59]) {
      const alone = await broker.runJob(`alone-${i}`, [items(100)[i]])
      const row = alone.get(`item-${i}`)!.result as number[]
      const among = together.get(`item-${i}`)!.result as number[]
      expect(row).toHaveLength(64)
      row.forEach((x, d) => {
        expect(among[d]).toBeCloseTo(x, 5)
      })
    }
    consumer.kill('SIGTERM')
    expect(await consumer.exited()).toBe(0)
  })
})

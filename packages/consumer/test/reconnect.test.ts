// Losing the broker and finding it again.
import { Consumer } from '@fabric/consumer'
import { describe, expect, onTestFinished, test } from 'vitest'
import { backoffMs } from '../src/connection/backoff.js'
import { gate } from './support/changes.js'
import { recordingLogger } from './support/logger.js'
import { start } from './support/start-consumer.js'
import { json, StubBroker } from './support/stub-broker.js'

const ONE = [{ tokens: [1, 2] }]
const CONTRACT = { batchSize: 8, tokens: 1024, inputLength: 64, model: 1 }

describe.each(['socket', 'ring'] as const)('reconnect by the %s', (transport) => {
  test('a batch in hand outlives the connection, and its results reach the same broker life', async () => {
    const { broker, consumer } = await start({ transport })
    const { promise, open } = gate()
    const rows: number[][] = []
    void consumer.run(async (batch) => {
      if (batch.id === 1) await promise
      rows.push(Array.from(batch.inputIds))
      return ['late but here']
    })
    const first = await broker.registered()
    first.send({ batch: 1, items: ONE })
    await first.until(() => first.taken.length === 1)
    first.close()
    const second = await broker.registered(1)
    open()
    const outcomes = await second.outcomes(1, 1)
    expect(json(outcomes.get(0)!)).toBe('late but here')
    expect(rows[0].slice(0, 2)).toEqual([1, 2])
    second.send({ batch: 2, items: ONE })
    await second.outcomes(2, 1)
  })

  test('results that are ready while there is no connection wait for the next one', async () => {
    const { broker, consumer } = await start({ transport })
    const { promise, open } = gate()
    void consumer.run(async () => {
      await promise
      return ['kept']
    })
    const first = await broker.registered()
    first.send({ batch: 1, items: ONE })
    await first.until(() => first.taken.length === 1)
    const lost = new Promise((resolve) => consumer.once('disconnected', resolve))
    const settled = new Promise((resolve) => consumer.once('settled', resolve))
    await broker.stop()
    await lost
    open()
    await settled
    await broker.listen()
    const second = await broker.registered(1)
    expect(json((await second.outcomes(1, 1)).get(0)!)).toBe('kept')
  })

  test('results of another life of the broker are dropped, with a log line', async () => {
    const { logger, lines } = recordingLogger()
    const { broker, consumer } = await start({ transport, brokerLife: 1n }, { logger })
    const { promise, open } = gate()
    void consumer.run(async (batch) => {
      if (batch.id === 1) await promise
      return ['too late']
    })
    const first = await broker.registered()
    first.send({ batch: 1, items: ONE })
    await first.until(() => first.taken.length === 1)
    broker.options = { ...broker.options, brokerLife: 2n }
    const again = new Promise((resolve) => consumer.once('registered', resolve))
    first.close()
    await again
    open()
    const second = await broker.registered(1)
    second.send({ batch: 2, items: ONE })
    await second.outcomes(2, 1)
    expect(second.results.map(({ batch }) => batch)).toEqual([2])
    expect(lines.filter(({ message }) => message.includes('started anew'))).toHaveLength(1)
  })

  test('results that were kept for a broker that came back as another are dropped, with a log line', async () => {
    const { logger, lines } = recordingLogger()
    const { broker, consumer } = await start({ transport, brokerLife: 1n }, { logger })
    const { promise, open } = gate()
    void consumer.run(async () => {
      await promise
      return ['too late']
    })
    const first = await broker.registered()
    first.send({ batch: 1, items: ONE })
    await first.until(() => first.taken.length === 1)
    const lost = new Promise((resolve) => consumer.once('disconnected', resolve))
    const settled = new Promise((resolve) => consumer.once('settled', resolve))
    await broker.stop()
    await lost
    open()
    await settled
    broker.options = { ...broker.options, brokerLife: 2n }
    await broker.listen()
    const second = await broker.registered(1)
    second.send({ batch: 2, items: ONE })
    await second.outcomes(2, 1)
    expect(second.results.map(({ batch }) => batch)).toEqual([2])
    expect(lines.filter(({ message }) => message.includes('started anew'))).toHaveLength(1)
  })

  test.each([
    ['in hand when it came back', false],
    ['ready while there was none', true],
  ])(
    'S26: results %s as another life go to it with their items, if it takes them',
    async (_, isAway) => {
      const options = { transport, brokerLife: 1n, earlierResults: true }
      const { broker, consumer } = await start(options)
      const { promise, open } = gate()
      void consumer.run(async (batch) => {
        if (batch.id === 1) await promise
        return batch.itemIds.map((id) => `of ${id}`)
      })
      const first = await broker.registered()
      first.send({
        batch: 1,
        items: [
          { id: 'x', tokens: [1, 2] },
          { id: 'y', tokens: [3] },
        ],
      })
      await first.until(() => first.taken.length === 1)
      const lost = new Promise((resolve) => consumer.once('disconnected', resolve))
      const settled = new Promise((resolve) => consumer.once('settled', resolve))
      const again = new Promise((resolve) => consumer.once('registered', resolve))
      await broker.stop()
      await lost
      if (isAway) open()
      if (isAway) await settled
      broker.options = { ...broker.options, brokerLife: 2n }
      await broker.listen()
      await again
      open()
      const second = await broker.registered(1)
      await second.until(() => second.earlier.length === 1)
      const { results, ids, tokens } = second.earlier[0]
      expect([...tokens]).toEqual([1, 2, 3])
      expect(new TextDecoder().decode(ids)).toBe('xy')
      expect(results).toMatchObject({ batch: 1, brokerLife: 1n, count: 2 })
      expect(new TextDecoder().decode(results.value(1))).toBe('"of y"')
      second.send({ batch: 2, items: ONE })
      await second.outcomes(2, 1)
      expect(second.results.map(({ batch }) => batch)).toEqual([2])
    },
  )

  test('a batch that was not taken when the connection ended is not worked on', async () => {
    const { broker, consumer } = await start({ transport })
    const { promise, open } = gate()
    const begun: number[] = []
    void consumer.run(async (batch) => {
      begun.push(batch.id)
      if (batch.id === 1) await promise
      return [1]
    })
    const first = await broker.registered()
    for (const batch of [1, 2]) first.send({ batch, items: ONE })
    await first.until(() => first.taken.length === 1)
    first.close()
    const second = await broker.registered(1)
    open()
    second.send({ batch: 3, items: ONE })
    await second.outcomes(3, 1)
    expect(begun).toEqual([1, 3])
  })
})

describe('reconnect', () => {
  test('a broker that is not there yet is found when it comes; one log line names the path', async () => {
    const { logger, lines } = recordingLogger()
    const broker = new StubBroker()
    const consumer = new Consumer({ broker: broker.address, ...CONTRACT, logger })
    onTestFinished(async () => {
      await consumer.drain()
      await broker.dispose()
    })
    void consumer.run(() => [1])
    await lines.until(() => lines.filter(({ level }) => level === 'debug').length >= 2)
    await broker.listen()
    await broker.registered()
    const warnings = lines.filter(({ level }) => level === 'warn')
    expect(warnings).toHaveLength(1)
    expect(warnings[0].message).toContain(`no broker answers at unix:${broker.path}`)
  })

  test('a refusal for good ends the run with the broker’s own words', async () => {
    const refusal = { code: 'FABRIC_CONTRACT_CLASSES', message: '64 contracts already' } as const
    const { broker, consumer } = await start({ refusal })
    await expect(consumer.run(() => [])).rejects.toMatchObject(refusal)
    expect(broker.refused).toBe(1)
    expect(consumer.status.state).toBe('ended')
  })

  test('a refusal that passes is asked about again', async () => {
    const refusal = { code: 'FABRIC_CONSUMER_LIMIT', message: 'full house' } as const
    const { broker, consumer } = await start({ refusal })
    void consumer.run(() => [])
    await broker.until(() => broker.refused === 2)
    broker.options = {}
    await broker.registered()
  })

  test('without reconnect the first failure, or loss, ends the run', async () => {
    const missing = new Consumer({ broker: 'unix:/nowhere/at.all', ...CONTRACT, reconnect: false })
    await expect(missing.run(() => [])).rejects.toMatchObject({
      code: 'FABRIC_BROKER_UNREACHABLE',
    })
    const { broker, consumer } = await start({}, { reconnect: false })
    const running = consumer.run(() => [])
    const connection = await broker.registered()
    connection.close()
    await expect(running).rejects.toMatchObject({ code: 'FABRIC_CONNECTION_LOST' })
  })

  test('with a connect timeout it gives up when that has passed', async () => {
    const options = { broker: 'unix:/nowhere/at.all', ...CONTRACT, connectTimeoutMs: 150 }
    const consumer = new Consumer(options)
    await expect(consumer.run(() => [])).rejects.toMatchObject({
      code: 'FABRIC_BROKER_UNREACHABLE',
    })
  })

  test('an iteration hears of a failure too', async () => {
    const consumer = new Consumer({
      broker: 'unix:/nowhere/at.all',
      ...CONTRACT,
      reconnect: false,
    })
    const iteration = consumer[Symbol.asyncIterator]()
    await expect(iteration.next()).rejects.toMatchObject({ code: 'FABRIC_BROKER_UNREACHABLE' })
  })

  test('a drain does not wait for a broker that is gone', async () => {
    const { broker, consumer } = await start({})
    const running = consumer.run(() => [])
    await broker.registered()
    const lost = new Promise((resolve) => consumer.once('disconnected', resolve))
    await broker.stop()
    await lost
    await Promise.all([consumer.drain(), running])
  })

  test('the wait doubles from 100 ms to 5 s and is spread over its upper half', () => {
    expect([0, 1, 2, 5, 6, 1000].map((failures) => backoffMs(failures, 1))).toEqual([
      100, 200, 400, 3200, 5000, 5000,
    ])
    expect(backoffMs(0, 0)).toBe(50)
    expect(backoffMs(40, 0)).toBe(2500)
  })
})

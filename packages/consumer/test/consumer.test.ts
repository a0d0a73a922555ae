// What the consumer does with batches, handlers and its own end, against the broker's side of the
// protocol; by the socket, where the transport makes no difference.
import { FabricError, ItemError } from '@fabric/consumer'
import { encodeError, encodeFrame, FrameType, Outcome } from '@fabric/protocol'
import { describe, expect, test } from 'vitest'
import { count } from './support/batches.js'
import { gate } from './support/changes.js'
import { recordingLogger } from './support/logger.js'
import { start } from './support/start-consumer.js'
import { json } from './support/stub-broker.js'

const TWO = [{ tokens: [5, 6, 7] }, { tokens: [8] }]

describe('consumer', () => {
  test('batches that the ring had no room for come by the socket of the same connection', async () => {
    const { broker, consumer } = await start({ transport: 'ring' })
    void consumer.run((batch) => [batch.inputIds.length])
    const connection = await broker.registered()
    const items = [{ tokens: count(8) }]
    connection.sendBySocket({ batch: 1, items })
    await connection.outcomes(1, 1)
    connection.send({ batch: 2, items })
    await connection.outcomes(2, 1)
    connection.sendBySocket({ batch: 3, items })
    await connection.outcomes(3, 1)
  })

  test('the ring is shown with its page size, the socket with its reason', async () => {
    const ring = await start({ transport: 'ring' })
    void ring.consumer.run(() => [])
    await new Promise((resolve) => ring.consumer.once('registered', resolve))
    expect(ring.consumer.status).toMatchObject({ transport: 'ring', pageSizeBytes: 4096 })
    const socket = await start({ transport: 'ring' }, { transport: 'socket' })
    void socket.consumer.run(() => [])
    await new Promise((resolve) => socket.consumer.once('registered', resolve))
    expect(socket.consumer.status).toMatchObject({
      transport: 'socket',
      transportReason: 'as the test wants it',
      pageSizeBytes: null,
    })
  })

  test('the hello holds the contract and the name', async () => {
    const { broker, consumer } = await start({}, { name: 'gpu0', roundTo: 16, maxInFlight: 3 })
    void consumer.run(() => [])
    const { hello } = await broker.registered()
    expect(hello).toMatchObject({
      name: 'gpu0',
      transport: 'auto',
      pid: process.pid,
      contract: {
        batchSize: 8,
        tokens: 1024,
        inputLength: 64,
        model: 1,
        roundTo: 16,
        maxInFlight: 3,
      },
    })
  })

  test('a handler that throws gives all items back for another try, and the next batch runs', async () => {
    const { broker, consumer } = await start({})
    void consumer.run((batch) => {
      if (batch.id === 1) throw new Error('the engine stumbled')
      return ['fine', 'fine']
    })
    const connection = await broker.registered()
    connection.send({ batch: 1, items: TWO })
    connection.send({ batch: 2, items: TWO })
    const outcomes = await connection.outcomes(1, 2)
    for (const i of [0, 1]) {
      expect(outcomes.get(i)!.outcome).toBe(Outcome.retry)
      expect(json(outcomes.get(i)!)).toMatchObject({ message: 'the engine stumbled' })
    }
    await connection.outcomes(2, 2)
  })

  test('a batch that does not fit the device comes back in halves', async () => {
    const { broker, consumer } = await start({})
    void consumer.run(() => {
      throw new FabricError('FABRIC_OUT_OF_MEMORY', 'the device is full')
    })
    const connection = await broker.registered()
    connection.send({ batch: 1, items: TWO })
    const outcomes = await connection.outcomes(1, 2)
    expect(outcomes.get(1)!.outcome).toBe(Outcome.nack)
    expect(json(outcomes.get(1)!)).toMatchObject({ code: 'FABRIC_OUT_OF_MEMORY' })
  })

  test('one ItemError fails its item and no neighbour', async () => {
    const { broker, consumer } = await start({})
    void consumer.run(() => [new ItemError('bad input'), 'fine'])
    const connection = await broker.registered()
    connection.send({ batch: 1, items: TWO })
    const outcomes = await connection.outcomes(1, 2)
    expect(outcomes.get(0)!.outcome).toBe(Outcome.failed)
    expect(json(outcomes.get(0)!)).toEqual({ code: 'FABRIC_ITEM_FAILED', message: 'bad input' })
    expect(outcomes.get(1)!.outcome).toBe(Outcome.completed)
  })

  test('results of the wrong number fail the batch’s items and name both numbers', async () => {
    const { broker, consumer } = await start({})
    void consumer.run(() => ['only one'])
    const connection = await broker.registered()
    connection.send({ batch: 1, items: TWO })
    const outcomes = await connection.outcomes(1, 2)
    expect(outcomes.get(0)!.outcome).toBe(Outcome.failed)
    expect(json(outcomes.get(0)!)).toEqual({
      code: 'FABRIC_RESULT_MALFORMED',
      message: '2 results were expected, one per item, and 1 returned',
    })
  })

  test('over-long items are cut, and their results say to what length', async () => {
    const { broker, consumer } = await start({}, { inputLength: 10 })
    void consumer.run((batch) => {
      const { paddedLength } = batch
      return Array.from(batch.lengths, (length, i) =>
        Array.from(batch.inputIds.subarray(i * paddedLength, i * paddedLength + length)),
      )
    })
    const connection = await broker.registered()
    connection.send({ batch: 1, items: [{ tokens: count(20) }, { tokens: [4, 5] }] })
    const outcomes = await connection.outcomes(1, 2)
    expect(json(outcomes.get(0)!)).toEqual(count(10))
    expect(outcomes.get(0)!.truncatedTo).toBe(10)
    expect(json(outcomes.get(1)!)).toEqual([4, 5])
    expect(outcomes.get(1)!.truncatedTo).toBe(0)
  })

  test('under `fail` an over-long item fails alone, and a batch of nothing else needs no handler', async () => {
    const { broker, consumer } = await start({}, { inputLength: 10, overlength: 'fail' })
    const sizes: number[] = []
    void consumer.run((batch) => {
      sizes.push(batch.size)
      return batch.itemIds
    })
    const connection = await broker.registered()
    connection.send({ batch: 1, items: [{ tokens: count(20) }] })
    connection.send({ batch: 2, items: [{ tokens: count(20) }, { tokens: [4, 5] }] })
    expect(json((await connection.outcomes(1, 1)).get(0)!)).toMatchObject({
      code: 'FABRIC_INPUT_TOO_LONG',
    })
    const outcomes = await connection.outcomes(2, 2)
    expect(outcomes.get(0)!.outcome).toBe(Outcome.failed)
    expect(json(outcomes.get(1)!)).toBe('item-1')
    expect(sizes).toEqual([1])
    expect(connection.taken).toEqual([1, 2])
  })

  test('bytes that are no batch end the connection with the reason, and it connects anew', async () => {
    const { broker, consumer } = await start({})
    void consumer.run(() => ['fine'])
    const first = await broker.registered()
    first.sendFrame(encodeFrame(FrameType.batch, new Uint8Array(100)))
    await first.until(() => first.errors.length === 1)
    expect(first.errors[0].code).toBe('FABRIC_BATCH_MALFORMED')
    const second = await broker.registered(1)
    second.send({ batch: 1, items: [{ tokens: [1] }] })
    await second.outcomes(1, 1)
  })

  test('a drain during the handshake still says goodbye', async () => {
    const { broker, consumer } = await start({})
    const running = consumer.run(() => [])
    await broker.until(() => broker.connections.length === 1)
    await Promise.all([consumer.drain(), running])
    await broker.until(() => broker.connections[0].isClosed)
    expect(broker.connections[0].hasSaidBye).toBe(true)
  })

  test('an aborted signal drains, also one that was aborted before', async () => {
    const { broker, consumer } = await start({})
    const controller = new AbortController()
    const running = consumer.run(() => [], { signal: controller.signal })
    const connection = await broker.registered()
    controller.abort()
    await running
    expect(connection.hasSaidBye).toBe(true)
    const late = await start({})
    await late.consumer.run(() => [], { signal: AbortSignal.abort() })
    expect(late.consumer.status.state).toBe('ended')
  })

  test('a broker that asks for a drain gets what is in flight, and the consumer stays for the next', async () => {
    const { logger, lines } = recordingLogger()
    const { broker, consumer } = await start({}, { logger })
    const { promise, open } = gate()
    void consumer.run(async () => {
      await promise
      return ['finished']
    })
    const first = await broker.registered()
    first.send({ batch: 1, items: [{ tokens: [1] }] })
    await first.until(() => first.taken.length === 1)
    first.send({ batch: 2, items: [{ tokens: [1] }] })
    first.sendFrame(encodeFrame(FrameType.drain))
    await lines.until(() => lines.some(({ message }) => message.includes('take nothing more')))
    open()
    await first.outcomes(1, 1)
    first.close()
    const second = await broker.registered(1)
    second.send({ batch: 3, items: [{ tokens: [1] }] })
    await second.outcomes(3, 1)
    expect(first.taken).toEqual([1])
    expect(second.taken).toEqual([3])
  })

  test('a consumer that the operator drained ends without an error', async () => {
    const { broker, consumer } = await start({})
    const running = consumer.run(() => [])
    const connection = await broker.registered()
    const error = { code: 'FABRIC_CONSUMER_DRAINED', message: 'drained by the operator' } as const
    connection.endWith(encodeError(error))
    await running
    expect(consumer.status.state).toBe('ended')
  })

  test('it can be started once, and drained before it was', async () => {
    const { consumer } = await start({})
    void consumer.run(() => [])
    await expect(consumer.run(() => [])).rejects.toThrow('started before')
    const idle = await start({})
    await idle.consumer.drain()
    expect(idle.consumer.status.state).toBe('ended')
  })
})

// What both transports must do alike, against the broker's side of the protocol.
import { type Batch, ItemError } from '@fabric/consumer'
import { Encoding, Outcome } from '@fabric/protocol'
import { describe, expect, test } from 'vitest'
import { gate } from './support/changes.js'
import { start } from './support/start-consumer.js'
import { floats, json, text } from './support/stub-broker.js'

const TWO = [{ tokens: [5, 6, 7] }, { tokens: [8] }]

describe.each(['socket', 'ring'] as const)('consumer by the %s', (transport) => {
  test('hands the handler the rows, lengths and ids of a batch, and sends what it returns', async () => {
    const { broker, consumer } = await start({ transport })
    const seen: unknown[] = []
    const running = consumer.run((batch) => {
      seen.push({
        id: batch.id,
        model: batch.model,
        attempt: batch.attempt,
        size: batch.size,
        paddedLength: batch.paddedLength,
        tokenCount: batch.tokenCount,
        inputIds: Array.from(batch.inputIds),
        lengths: Array.from(batch.lengths),
        itemIds: batch.itemIds,
        payloads: batch.payloads,
      })
      return [Float32Array.of(0.5, -1), { label: 'short' }]
    })
    const connection = await broker.registered()
    connection.send({ batch: 7, attempt: 2, items: TWO })
    const outcomes = await connection.outcomes(7, 2)
    expect(seen).toEqual([
      {
        id: 7,
        model: 1,
        attempt: 2,
        size: 2,
        paddedLength: 8,
        tokenCount: 4,
        inputIds: [5, 6, 7, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0],
        lengths: [3, 1],
        itemIds: ['item-0', 'item-1'],
        payloads: null,
      },
    ])
    expect(connection.taken).toEqual([7])
    expect(floats(outcomes.get(0)!)).toEqual([0.5, -1])
    expect(json(outcomes.get(1)!)).toEqual({ label: 'short' })
    expect(consumer.status).toMatchObject({ transport, batches: 1, items: 2, inFlight: 0 })
    await consumer.drain()
    await running
    expect(connection.hasSaidBye).toBe(true)
  })

  test('views of a batch end when it is settled, and never show another batch', async () => {
    const { broker, consumer } = await start({ transport })
    const kept: Batch[] = []
    void consumer.run((batch) => {
      kept.push(batch)
      return batch.itemIds.map((id) => id)
    })
    const connection = await broker.registered()
    connection.send({ batch: 1, items: TWO })
    connection.send({ batch: 2, items: [{ tokens: [99] }] })
    await connection.outcomes(2, 1)
    for (const batch of kept) {
      expect(batch.inputIds.length).toBe(0)
      expect(batch.lengths.length).toBe(0)
      expect(batch.inputIds[0]).toBeUndefined()
      expect(batch.settled).toBe(true)
    }
  })

  test('payloads are given in place, and may be sent back as they are', async () => {
    const { broker, consumer } = await start({ transport })
    void consumer.run((batch) => batch.payloads ?? [])
    const connection = await broker.registered()
    const items = [
      { tokens: [1], payload: 'one' },
      { tokens: [2], payload: '' },
      { tokens: [3], payload: 'drei' },
    ]
    connection.send({ batch: 3, items })
    const outcomes = await connection.outcomes(3, 3)
    expect([0, 1, 2].map((i) => text(outcomes.get(i)!))).toEqual(['one', '', 'drei'])
    expect(outcomes.get(0)!.encoding).toBe(Encoding.bytes)
  })

  test('a ragged batch has offsets instead of padding', async () => {
    const { broker, consumer } = await start({ transport }, { layout: 'ragged' })
    void consumer.run((batch) =>
      Array.from(batch.lengths, (_, i) =>
        Array.from(batch.inputIds.subarray(batch.offsets?.[i], batch.offsets?.[i + 1])),
      ),
    )
    const connection = await broker.registered()
    connection.send({ batch: 1, layout: 'ragged', items: TWO })
    const outcomes = await connection.outcomes(1, 2)
    expect(json(outcomes.get(0)!)).toEqual([5, 6, 7])
    expect(json(outcomes.get(1)!)).toEqual([8])
  })

  test('works on at most maxInFlight batches and takes the next only then', async () => {
    const { broker, consumer } = await start({ transport }, { maxInFlight: 2 })
    const gates = [gate(), gate(), gate()]
    const begun: number[] = []
    void consumer.run(async (batch) => {
      begun.push(batch.id)
      await gates[batch.id].promise
      return [null]
    })
    const connection = await broker.registered()
    for (const batch of [0, 1, 2]) connection.send({ batch, items: [{ tokens: [1] }] })
    await connection.until(() => connection.taken.length === 2)
    expect(begun).toEqual([0, 1])
    gates[1].open()
    await connection.until(() => connection.taken.length === 3)
    expect(begun).toEqual([0, 1, 2])
    expect(consumer.status.inFlight).toBe(2)
    gates[0].open()
    gates[2].open()
    await connection.outcomes(2, 1)
  })

  test('leaving a for-await loop gives back what is unsettled and says goodbye', async () => {
    const { broker, consumer } = await start({ transport })
    const looping = (async () => {
      for await (const batch of consumer) {
        batch.ackItem(0, 'done')
        break
      }
    })()
    const connection = await broker.registered()
    connection.send({ batch: 5, items: TWO })
    await looping
    const outcomes = await connection.outcomes(5, 2)
    expect(outcomes.get(0)!.outcome).toBe(Outcome.completed)
    expect(outcomes.get(1)!.outcome).toBe(Outcome.nack)
    await connection.until(() => connection.hasSaidBye)
  })

  test('a for-await loop settles by ack, fail and nack, and ends when the consumer drains', async () => {
    const { broker, consumer } = await start({ transport })
    const looping = (async () => {
      for await (const batch of consumer) {
        if (batch.id === 1) batch.ack(new Float32Array([1, 2, 3, 4]))
        if (batch.id === 2) {
          batch.fail(0, 'not now', { retry: true })
          batch.fail(1, new ItemError('never', { code: 'FABRIC_ITEM_MALFORMED' }))
        }
        if (batch.id === 3) batch.nack({ split: true })
      }
    })()
    const connection = await broker.registered()
    for (const batch of [1, 2, 3]) connection.send({ batch, items: TWO })
    const acked = await connection.outcomes(1, 2)
    expect([0, 1].map((i) => floats(acked.get(i)!))).toEqual([
      [1, 2],
      [3, 4],
    ])
    const bad = await connection.outcomes(2, 2)
    expect(bad.get(0)!.outcome).toBe(Outcome.retry)
    expect(json(bad.get(0)!)).toEqual({ code: 'FABRIC_ITEM_FAILED', message: 'not now' })
    expect(bad.get(1)!.outcome).toBe(Outcome.failed)
    expect(json(bad.get(1)!)).toEqual({ code: 'FABRIC_ITEM_MALFORMED', message: 'never' })
    const given = await connection.outcomes(3, 2)
    expect(given.get(0)!.outcome).toBe(Outcome.nack)
    expect(json(given.get(0)!)).toMatchObject({ code: 'FABRIC_OUT_OF_MEMORY' })
    await consumer.drain()
    await looping
  })

  test('a drain finishes what is in flight and leaves what was not taken', async () => {
    const { broker, consumer } = await start({ transport })
    const { promise, open } = gate()
    const running = consumer.run(async () => {
      await promise
      return [1]
    })
    const connection = await broker.registered()
    connection.send({ batch: 1, items: [{ tokens: [1] }] })
    connection.send({ batch: 2, items: [{ tokens: [1] }] })
    await connection.until(() => connection.taken.length === 1)
    const draining = consumer.drain()
    await connection.until(() => connection.hasDrained)
    expect(connection.results).toEqual([])
    open()
    await Promise.all([draining, running])
    await connection.until(() => connection.isClosed)
    expect(connection.results.map(({ batch }) => batch)).toEqual([1])
    expect(connection.taken).toEqual([1])
    expect(connection.hasSaidBye).toBe(true)
    expect(consumer.status.state).toBe('ended')
  })
})

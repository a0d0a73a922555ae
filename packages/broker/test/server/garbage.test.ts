// Bytes that no consumer of ours sends, by the thousand: every frame parser answers with a value or
// with one of our errors, and a real broker closes that connection and serves the next.
import { once } from 'node:events'
import net from 'node:net'
import {
  decodeError,
  decodeHello,
  decodeResults,
  decodeTaken,
  encodeError,
  encodeFrame,
  encodeHello,
  encodeResults,
  encodeTaken,
  FabricError,
  FrameReader,
  FrameType,
} from '@fabric/protocol'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { items, testBroker } from '../support/broker.ts'
import { FakeConsumer, hello } from '../support/fake-consumer.ts'
import { until } from '../support/until.ts'

const RUNS = Number(process.env.FABRIC_FUZZ_RUNS ?? 2_000)

/** Frames as they should be, for the mutations to start from. */
const valid = [
  encodeHello(hello()),
  encodeError({ code: 'FABRIC_PROTOCOL', message: 'm', field: 'f' }),
  encodeTaken(7),
  encodeFrame(FrameType.renew),
  encodeFrame(FrameType.drain),
  encodeFrame(
    FrameType.results,
    encodeResults(
      7,
      9n,
      [0, 1, 2].map((index) => ({
        index,
        outcome: 0 as const,
        encoding: 2 as const,
        value: new Uint8Array(8),
        truncatedTo: 0,
      })),
    ),
  ),
]

/** A valid frame with some bytes changed, cut or doubled, or bytes from nowhere. */
const bytes = fc.oneof(
  fc.uint8Array({ maxLength: 200 }),
  fc
    .record({
      frame: fc.constantFrom(...valid),
      edits: fc.array(fc.tuple(fc.nat(400), fc.nat(255)), { maxLength: 6 }),
      cut: fc.option(fc.nat(400)),
    })
    .map(({ frame, edits, cut }) => {
      const changed = frame.slice(0, cut === null ? frame.length : cut % (frame.length + 1))
      for (const [at, value] of edits) if (changed.length > 0) changed[at % changed.length] = value
      return changed
    }),
)

/** What it returns or the error that is ours; any other one is a failure of the test. */
function ours<T>(work: () => T): T | FabricError {
  try {
    return work()
  } catch (error) {
    if (error instanceof FabricError) return error
    throw error
  }
}

describe('garbage', () => {
  test('frames are cut from any bytes in any pieces, or refused', () => {
    fc.assert(
      fc.property(fc.array(bytes, { maxLength: 8 }), fc.boolean(), (chunks, trusted) => {
        const reader = new FrameReader(trusted)
        let fed = 0
        let cut = 0
        for (const chunk of chunks) {
          reader.push(chunk)
          fed += chunk.length
          for (;;) {
            const frame = ours(() => reader.next())
            if (frame instanceof FabricError) return
            if (frame === null) break
            cut += 8 + frame.body.length
          }
        }
        expect(cut).toBeLessThanOrEqual(fed)
      }),
      { numRuns: RUNS },
    )
  })

  test('bodies are read, or refused with our error', () => {
    fc.assert(
      fc.property(bytes, (frame) => {
        const body = frame.subarray(Math.min(8, frame.length))
        for (const decode of [decodeHello, decodeError, decodeTaken]) ours(() => decode(body))
        const results = ours(() => decodeResults(body))
        if (results instanceof FabricError) return
        for (let i = 0; i < results.count; i++) results.value(i)
      }),
      { numRuns: RUNS },
    )
  })

  test('a broker that is sent garbage, before and after hello, closes that and serves on', async () => {
    const broker = await testBroker()
    const rounds = Math.max(20, Math.ceil(RUNS / 100))
    const closed = fc.sample(bytes, { numRuns: rounds, seed: 1 }).map((garbage, index) => {
      const socket = net.connect(broker.socketPath)
      socket.on('error', () => {})
      if (index % 2 === 1)
        socket.write(encodeHello(hello({ name: `g${index}`, transport: 'socket' })))
      socket.end(garbage)
      socket.resume()
      return once(socket, 'close')
    })
    await Promise.all(closed)
    await until(() => broker.state().consumers.length === 0)
    const honest = await FakeConsumer.connect(broker.socketPath)
    await broker.post('/v1/items', items(8))
    await honest.work(() => broker.state().items.settled.completed === 8)
    expect(broker.log.filter(({ level }) => level >= 50)).toEqual([])
  })
})

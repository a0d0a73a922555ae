// The layout is documented well enough for a reader in another language: one in Python, standard
// library only, reads batches of a real broker, byte for byte.
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { openBatch, planBatch, writeBatchHeader } from '@fabric/protocol'
import { describe, expect, test } from 'vitest'
import { items, ndjson, testBroker } from '../support/broker.ts'
import { TestProcess } from '../support/processes.ts'
import { until } from '../support/until.ts'

const SCRIPT = join(import.meta.dirname, '../../../shm-ring/examples/read_ring.py')

interface Line {
  readonly batch: number
  readonly via: 'ring' | 'socket'
  readonly ids: readonly string[]
  readonly bytes: string
}

const startReader = (...args: string[]) =>
  new TestProcess(spawn('python3', ['-B', SCRIPT, ...args], { stdio: 'pipe' }))

const linesOf = (reader: TestProcess) =>
  reader.output
    .split('\n')
    .filter((line) => line.startsWith('{"batch"'))
    .map((line) => JSON.parse(line) as Line)

/** The batch as the format says, made from the items and not from what arrived. */
function expected(
  batch: number,
  brokerLife: bigint,
  rows: readonly { id: string; tokens: number[] }[],
  paddedLength: number,
) {
  const ids = rows.map(({ id }) => Buffer.from(id))
  const plan = planBatch({
    layout: 'padded',
    size: rows.length,
    paddedLength,
    actualTokens: rows.reduce((sum, { tokens }) => sum + tokens.length, 0),
    idBytes: ids.reduce((sum, id) => sum + id.length, 0),
    payloadBytes: null,
  })
  const bytes = Buffer.alloc(plan.totalBytes)
  const memory = new ArrayBuffer(plan.totalBytes)
  writeBatchHeader(memory, 0, { batch, brokerLife, model: 0, attempt: 1 }, plan)
  Buffer.from(memory).copy(bytes)
  let end = 0
  rows.forEach(({ tokens }, row) => {
    bytes.writeInt32LE(tokens.length, plan.lengthsAt + 4 * row)
    tokens.forEach((token, i) => {
      bytes.writeInt32LE(token, plan.inputIdsAt + 4 * (row * paddedLength + i))
    })
    end += ids[row].length
    bytes.writeUInt32LE(end, plan.idEndsAt + 4 * row)
  })
  Buffer.concat(ids).copy(bytes, plan.idEndsAt + 4 * rows.length)
  return bytes
}

describe('a reader in Python', () => {
  test('reads every batch in place over several laps of the ring, and its results are settled', async () => {
    const broker = await testBroker()
    // 4096 tokens are 16 KiB: 600 batches are more than twice the ring of 4 MiB.
    const shape = ['--batch-size', '16', '--tokens', '4096', '--input-length', '256']
    const reader = startReader(broker.socketPath, '--bytes', '--batches', '600', ...shape)
    await broker.untilState((state) => state.consumers.length === 1)
    const all = Array.from({ length: 600 }, (_, k) => items(16, 256, `b${k}-`)).flat()
    for (let from = 0; from < all.length; from += 1600)
      await broker.post('/v1/items', ndjson(all.slice(from, from + 1600)), 'application/x-ndjson')
    expect(await reader.exited, reader.errorLines.join('\n')).toEqual({ code: 0, signal: null })
    const lines = linesOf(reader)
    const byId = new Map(all.map((item) => [item.id, item]))
    expect(lines).toHaveLength(600)
    for (const line of lines) {
      expect(line.via).toBe('ring')
      const bytes = Buffer.from(line.bytes, 'base64')
      const view = openBatch(new Uint8Array(bytes).buffer)
      const rows = line.ids.map((id) => byId.get(id)!)
      const { batch, brokerLife, paddedLength } = view
      expect(bytes.equals(expected(batch, brokerLife, rows, paddedLength))).toBe(true)
    }
    expect(new Set(lines.flatMap(({ ids }) => ids)).size).toBe(all.length)
    const { settled } = broker.state().items
    expect(settled).toMatchObject({ completed: all.length, failed: 0 })
    expect(broker.log.some(({ msg }) => msg.startsWith('consumer python died'))).toBe(false)
  })

  test('sleeps until a batch comes, and goes when the broker drains', async () => {
    const broker = await testBroker()
    const reader = startReader(broker.socketPath, '--bytes')
    await broker.untilState((state) => state.consumers.length === 1)
    for (let round = 1; round <= 3; round++) {
      await broker.post('/v1/items', items(8, 8, `r${round}-`))
      await until(() => linesOf(reader).length === round)
    }
    const value = broker.get('/v1/jobs/default/results')
    const [first] = (await value).text.split('\n').map((line) => JSON.parse(line || '{}'))
    expect(first).toMatchObject({ status: 'completed', result: [8, 28] })
    const stopped = broker.stop()
    expect((await reader.exited).code).toBe(0)
    await stopped
  })

  test('reads batches of the socket as well, when there is no ring', async () => {
    const broker = await testBroker()
    const reader = startReader(broker.socketPath, '--transport', 'socket', '--batches', '1')
    await broker.untilState((state) => state.consumers.length === 1)
    await broker.post('/v1/items', items(8))
    expect((await reader.exited).code).toBe(0)
    expect(linesOf(reader)).toMatchObject([{ via: 'socket', ids: items(8).map(({ id }) => id) }])
  })
})

// S16 with a broker and a consumer in processes of their own: an item that may not wait, behind a bulk
// job of its shape. `npm run test:soak -- max-wait` sends 1,000,000.
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../support/broker.ts'
import { BrokerProcess, spawnConsumer } from '../support/processes.ts'
import { until } from '../support/until.ts'

const BULK = Number(process.env.FABRIC_BULK_ITEMS ?? 10_000)
const ITEMS_A_REQUEST = 10_000
const TOKENS = [1, 2, 3, 4, 5, 6, 7, 8]
/** As the test consumer registers: items of 8 tokens fill a batch of it. */
const BATCH_SIZE = 8
const CHANNEL_DEPTH = 2
const SETTLED_AT_LEAST_MS = 300_000

async function post(broker: BrokerProcess, path: string, body: string): Promise<void> {
  const headers = { 'content-type': 'application/x-ndjson' }
  const response = await fetch(broker.httpUrl + path, { method: 'POST', headers, body })
  expect(response.status).toBe(200)
}

async function sendBulk(broker: BrokerProcess): Promise<void> {
  for (let from = 0; from < BULK; from += ITEMS_A_REQUEST) {
    const count = Math.min(ITEMS_A_REQUEST, BULK - from)
    const lines = Array.from({ length: count }, (_, i) =>
      JSON.stringify({ id: `b${from + i}`, tokens: TOKENS, job: 'bulk' }),
    )
    await post(broker, '/v1/items', lines.join('\n'))
  }
}

async function resultIds(broker: BrokerProcess): Promise<string[]> {
  const text = await (await broker.fetch('/v1/jobs/bulk/results')).text()
  return text === ''
    ? []
    : text
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).id)
}

test.each(['ring', 'socket'] as const)(
  `S16: an item with a wait of 20 ms passes ${BULK} bulk items of its shape, by %s`,
  async (transport) => {
    const socket = join(temporaryFolder(), 'b.sock')
    const broker = await BrokerProcess.start(socket)
    const consumer = spawnConsumer(socket, { mode: 'hold', transport })
    await broker.untilState((state) => state.consumers.length === 1)
    await broker.fetch('/v1/jobs', { id: 'bulk', model: 0 })
    await sendBulk(broker)
    // It works on a batch, and its channel is full.
    await until(() => consumer.output.includes('taken'))
    await broker.untilState((state) => state.consumers[0].channelBatches === CHANNEL_DEPTH)
    const quick = { id: 'quick', tokens: TOKENS, job: 'bulk', maxWaitMs: 20 }
    await post(broker, '/v1/items', JSON.stringify(quick))
    await until(async () => {
      const response = await broker.fetch('/v1/items/quick?job=bulk')
      const { facts } = (await response.json()) as { facts: { isShapeDue: boolean } }
      return facts.isShapeDue
    })
    consumer.child.stdin!.write('go\n')
    const settled = await until(async () => {
      const ids = await resultIds(broker)
      return ids.includes('quick') ? ids : null
    }, SETTLED_AT_LEAST_MS)
    // The next batch that was packed is the quick one's, and in it the item is the first.
    expect(settled.indexOf('quick')).toBe((1 + CHANNEL_DEPTH) * BATCH_SIZE)
  },
  SETTLED_AT_LEAST_MS,
)

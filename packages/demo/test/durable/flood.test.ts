// Memory mode under a producer that is a hundred times too fast, with real processes: it is refused in
// time, the queue keeps its bound, and what was accepted comes back once. FABRIC_FLOOD_ITEMS for longer.
import { appendFileSync, readFileSync } from 'node:fs'
import { expect, onTestFinished, test } from 'vitest'
import { Plant, until } from './plant.js'

const ITEMS = Number(process.env.FABRIC_FLOOD_ITEMS ?? 20_000)
const REPORT = process.env.FABRIC_REPORT
const QUEUED_MAX = 2000
const LENGTH = 24
const PER_REQUEST = 1000
/** Of the broker once its queue has been full: buffers of requests and results come and go. */
const GROWTH_MAX = 1.5

interface Answer {
  readonly accepted: number
  readonly items: readonly { readonly id: string; readonly status: string }[]
}

const block = (first: number) =>
  Array.from({ length: PER_REQUEST }, (_, i) => ({
    id: `i${first + i}`,
    tokens: new Array(LENGTH).fill(first + i),
  }))

const residentBytes = (pid: number | undefined) =>
  1024 * Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0)

test('S34: a producer a hundred times too fast is refused in time, and memory stays flat', {
  timeout: 300_000,
}, async () => {
  const plant = new Plant([], ['--release-threshold', '1'])
  onTestFinished(() => plant.close())
  plant.brokerFlags.push('--max-queued-items', String(QUEUED_MAX))
  await plant.prepare()
  plant.spawnBroker()
  await plant.listening()
  plant.spawnConsumer(0)
  const post = async (path: string, body?: unknown) =>
    fetch(plant.url + path, {
      method: 'POST',
      headers: body === undefined ? {} : { 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  await post('/v1/jobs', { id: 'flood', model: 1 })
  const accepted: string[] = []
  let refusals = 0
  let fullBytes = 0
  let greatestBytes = 0
  // It never waits, as a producer should; each answer says how much was taken.
  for (let first = 0; first < ITEMS; first += PER_REQUEST) {
    const answer = await post('/v1/items?job=flood', block(first))
    expect([200, 429]).toContain(answer.status)
    const body = (await answer.json()) as Answer
    const taken = body.items.filter(({ status }) => status === 'accepted')
    for (const { id } of taken) accepted.push(id)
    if (taken.length < PER_REQUEST) {
      refusals += 1
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
    }
    const bytes = residentBytes(plant.broker?.child.pid)
    greatestBytes = Math.max(greatestBytes, bytes)
    if (first <= ITEMS / 4) fullBytes = Math.max(fullBytes, bytes)
    const waiting = (await plant.state())?.items.waiting ?? 0
    expect(waiting).toBeLessThanOrEqual(QUEUED_MAX)
  }
  await post('/v1/jobs/flood/flush')
  await until(
    async () => (await plant.state())?.items.settled.completed === accepted.length,
    'what was accepted completes',
  )
  const text = await (await fetch(`${plant.url}/v1/jobs/flood/results`)).text()
  const ids = text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line).id)
  const MiB = 2 ** 20
  const line = `flood: ${ITEMS} items offered, ${accepted.length} accepted, ${refusals} refusals; resident ${(fullBytes / MiB).toFixed(0)} MiB after a quarter, ${(greatestBytes / MiB).toFixed(0)} MiB at most`
  if (REPORT !== undefined) appendFileSync(REPORT, `${line}\n`)
  expect(ids.toSorted()).toEqual(accepted.toSorted())
  expect(refusals).toBeGreaterThan(0)
  expect(greatestBytes, line).toBeLessThan(fullBytes * GROWTH_MAX)
})

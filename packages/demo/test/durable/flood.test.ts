// Memory mode under a producer that is a hundred times too fast, with real processes: it is refused in
// time, or what memory has no room for is spilled; what was accepted comes back once. FABRIC_FLOOD_ITEMS
// for longer.
import { appendFileSync, readFileSync } from 'node:fs'
import type { BrokerState } from '@fabric/broker'
import { expect, onTestFinished, test } from 'vitest'
import { Plant, until } from './plant.js'

const ITEMS = Number(process.env.FABRIC_FLOOD_ITEMS ?? 20_000)
const REPORT = process.env.FABRIC_REPORT
const QUEUED_MAX = 2000
const LENGTH = 24
const PER_REQUEST = 1000
/** Of the broker once its queue has been full: buffers of requests and results come and go. */
const GROWTH_MAX = 1.5
/** An id is known until its job is deleted, also while its item waits on disk (S36). */
const KNOWN_ID_BYTES = 64

interface Answer {
  readonly accepted: number
  readonly items: readonly { readonly id: string; readonly status: string }[]
}

const block = (first: number) =>
  Array.from({ length: PER_REQUEST }, (_, i) => ({
    id: `i${first + i}`,
    tokens: new Array(LENGTH).fill(first + i),
  }))

const post = (plant: Plant, path: string, body?: unknown) =>
  fetch(plant.url + path, {
    method: 'POST',
    headers: body === undefined ? {} : { 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })

/** Anonymous and shared memory: mapped pages of a data file can be dropped at any time. */
function residentBytes(pid: number | undefined): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const kilobytes = (name: string) =>
    Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1] ?? 0)
  return 1024 * (kilobytes('RssAnon') + kilobytes('RssShmem'))
}

interface Flood {
  readonly accepted: readonly string[]
  readonly refusals: number
  readonly fullBytes: number
  readonly greatestBytes: number
}

/** A producer that never waits, as it should; each answer says how much was taken. */
async function flood(plant: Plant, check: (state: BrokerState) => void): Promise<Flood> {
  await plant.prepare()
  plant.spawnBroker()
  await plant.listening()
  plant.spawnConsumer(0)
  await post(plant, '/v1/jobs', { id: 'flood', model: 1 })
  const accepted: string[] = []
  let refusals = 0
  let fullBytes = 0
  let greatestBytes = 0
  for (let first = 0; first < ITEMS; first += PER_REQUEST) {
    const answer = await post(plant, '/v1/items?job=flood', block(first))
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
    const state = await plant.state()
    if (state !== null) check(state)
  }
  await post(plant, '/v1/jobs/flood/flush')
  await until(
    async () => (await plant.state())?.items.settled.completed === accepted.length,
    'what was accepted completes',
  )
  return { accepted, refusals, fullBytes, greatestBytes }
}

async function idsOfResults(plant: Plant): Promise<string[]> {
  const response = await fetch(`${plant.url}/v1/jobs/flood/results?follow=true`)
  const lines = (await response.text()).trimEnd().split('\n')
  return lines.map((line) => JSON.parse(line).id)
}

function report(name: string, { accepted, refusals, fullBytes, greatestBytes }: Flood): string {
  const MiB = 2 ** 20
  const line = `${name}: ${ITEMS} items offered, ${accepted.length} accepted, ${refusals} refusals; resident ${(fullBytes / MiB).toFixed(0)} MiB after a quarter, ${(greatestBytes / MiB).toFixed(0)} MiB at most`
  if (REPORT !== undefined) appendFileSync(REPORT, `${line}\n`)
  return line
}

function plantWith(...flags: string[]): Plant {
  const plant = new Plant([], ['--release-threshold', '1', ...flags])
  onTestFinished(() => plant.close())
  return plant
}

test('S34: a producer a hundred times too fast is refused in time, and memory stays flat', {
  timeout: 300_000,
}, async () => {
  const plant = plantWith('--max-queued-items', String(QUEUED_MAX))
  const flooded = await flood(plant, ({ items }) =>
    expect(items.waiting).toBeLessThanOrEqual(QUEUED_MAX),
  )
  const line = report('flood', flooded)
  expect((await idsOfResults(plant)).toSorted()).toEqual(flooded.accepted.toSorted())
  expect(flooded.refusals).toBeGreaterThan(0)
  expect(flooded.greatestBytes, line).toBeLessThan(flooded.fullBytes * GROWTH_MAX)
})

test('a spill takes all that a producer a hundred times too fast sends, and memory stays flat', {
  timeout: 300_000,
}, async () => {
  const plant = plantWith('--spill-above-items', String(QUEUED_MAX))
  plant.brokerFlags.push('--spill-dir', plant.folder)
  let spilled = 0
  const flooded = await flood(plant, ({ items, queue }) => {
    spilled = Math.max(spilled, queue.disk.items)
    // A request that began below the mark may end above it.
    expect(items.waiting - queue.disk.items).toBeLessThanOrEqual(QUEUED_MAX + PER_REQUEST)
  })
  const line = report('flood with a spill', flooded)
  expect((await idsOfResults(plant)).toSorted()).toEqual(flooded.accepted.toSorted())
  expect(flooded.accepted).toHaveLength(ITEMS)
  expect(spilled).toBeGreaterThan(0)
  const mostBytes = flooded.fullBytes * GROWTH_MAX + ITEMS * KNOWN_ID_BYTES
  expect(flooded.greatestBytes, line).toBeLessThan(mostBytes)
})

// Brokers that are killed, as real processes: what a producer was told outlives them, each accepted
// item has exactly one result, and what was not told may be sent again.
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { items, temporaryFolder } from '../support/broker.ts'
import { BrokerProcess, spawnConsumer, type TestProcess } from '../support/processes.ts'
import { until } from '../support/until.ts'

/** More: FABRIC_KILL_ROUNDS=50. */
const ROUNDS = Number(process.env.FABRIC_KILL_ROUNDS ?? 3)
const PER_REQUEST = 50

const lines = (text: string) =>
  text
    .trim()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))

class Site {
  readonly folder = temporaryFolder()
  readonly socket = join(this.folder, 'b.sock')
  broker!: BrokerProcess
  consumers: TestProcess[] = []

  async start(consumers: number, ...flags: string[]): Promise<void> {
    const data = join(this.folder, 'data')
    this.broker = await BrokerProcess.start(this.socket, '--data-dir', data, ...flags)
    this.consumers = Array.from({ length: consumers }, (_, i) =>
      spawnConsumer(this.socket, { name: `gpu${i}`, transport: 'socket' }),
    )
  }

  async kill(signal: NodeJS.Signals = 'SIGKILL') {
    this.broker.kill(signal)
    const exit = await this.broker.exited
    for (const consumer of this.consumers) consumer.kill('SIGKILL')
    return exit
  }
}

/** Sends what is left, block by block, until all is accepted or the broker is gone. */
async function produce(broker: BrokerProcess, left: ReturnType<typeof items>): Promise<void> {
  while (left.length > 0) {
    const block = left.slice(0, PER_REQUEST)
    const answer = await broker.fetch('/v1/items?job=j', block)
    const body = (await answer.json()) as { accepted: number; duplicate: number }
    expect(body.accepted + body.duplicate).toBe(block.length)
    left.splice(0, block.length)
  }
}

describe('kill -9 of the broker', () => {
  test('at any moment of a job: each accepted item has exactly one result', async () => {
    const site = new Site()
    const all = items(ROUNDS * 600)
    const left = [...all]
    await site.start(2)
    await site.broker.fetch('/v1/jobs', { id: 'j' })
    for (let round = 0; round < ROUNDS; round++) {
      // The producer is cut off in the middle; what it was not told it sends again.
      const producing = produce(site.broker, left).catch(() => {})
      const settled = async () => (await site.broker.state()).items.settled.completed
      const before = await settled()
      await until(async () => left.length === 0 || (await settled()) > before + 100)
      await site.kill()
      await producing
      await site.start(2)
    }
    await produce(site.broker, left)
    await site.broker.fetch('/v1/jobs/j/flush', {})
    const results = lines(await (await site.broker.fetch('/v1/jobs/j/results?follow=true')).text())
    const ids = results.map(({ id }) => id)
    expect(ids.length).toBe(all.length)
    expect(new Set(ids)).toEqual(new Set(all.map(({ id }) => id)))
    expect(results.map(({ offset }) => offset)).toEqual(results.map((_, i) => i))
  })
})

describe('SIGTERM', () => {
  test('drains: what is in flight is finished, new items get 503, the rest stays; exit code 0', async () => {
    const site = new Site()
    await site.start(0)
    const holder = spawnConsumer(site.socket, { mode: 'hold', transport: 'socket' })
    await site.broker.untilState((state) => state.consumers.length === 1)
    await site.broker.fetch('/v1/items', items(100))
    await until(() => holder.output.includes('taken'))
    site.broker.kill('SIGTERM')
    await site.broker.untilState((state) => state.draining)
    const refused = await site.broker.fetch('/v1/items', items(1, 8, 'late'))
    expect(refused.status).toBe(503)
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    holder.child.stdin!.write('go\n')
    expect(await site.broker.exited).toEqual({ code: 0, signal: null })

    await site.start(1)
    expect((await site.broker.state()).items.settled.completed).toBe(8)
    await site.broker.untilState((state) => state.items.settled.completed === 100)
    // Settled comes first, shown when it is durable.
    const results = await until(async () => {
      const text = await (await site.broker.fetch('/v1/jobs/default/results')).text()
      return lines(text).length >= 100 ? lines(text) : null
    })
    expect(new Set(results.map(({ id }) => id)).size).toBe(100)
    expect(results).toHaveLength(100)
  })

  test('a second one ends at once, and loses nothing that was told', async () => {
    const site = new Site()
    await site.start(0)
    const holder = spawnConsumer(site.socket, { mode: 'hold', transport: 'socket' })
    await site.broker.untilState((state) => state.consumers.length === 1)
    await site.broker.fetch('/v1/items', items(50))
    await until(() => holder.output.includes('taken'))
    const { broker } = site
    broker.kill('SIGTERM')
    await broker.untilState((state) => state.draining)
    // One wish within half a second counts once: it is sent until it is heard.
    const asking = setInterval(() => broker.kill('SIGTERM'), 100)
    expect((await broker.exited).code).toBe(143)
    clearInterval(asking)
    holder.kill('SIGKILL')
    await site.start(1)
    await site.broker.untilState((state) => state.items.settled.completed === 50)
  })
})

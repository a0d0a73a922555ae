// The same bytes each time, and a million items in the memory that the queue's bound says.
import { closeSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { parseScenario, Simulation } from '../src/index.js'
import { temporaryFolder } from './folder.js'
import { gpu, run } from './run.js'

const workload = {
  config: { leaseTimeoutMs: 100, retryDelayMs: 1, maxQueuedItems: 300 },
  consumers: [
    gpu({ tokens: 256, batchSize: 16, script: [{ nth: 2, do: 'nack' }], respawnMs: 3 }),
    gpu({ name: 'gpu1', tokens: 512, batchSize: 32, maxInFlight: 2 }),
  ],
  events: [
    { atUs: 0, submitMany: { count: 1500, lengths: [5, 40, 13, 22, 9], everyUs: 3, job: 'a' } },
    { atUs: 7, submitMany: { count: 500, lengths: [64, 1, 31], job: 'b', thenFlush: true } },
    { atUs: 900, kill: 'gpu0' },
    { atUs: 2000, stop: 'gpu1' },
    { atUs: 150_000, cont: 'gpu1' },
    { atUs: 160_000, restart: {} },
    { atUs: 160_000, flush: {} },
  ],
}

it('simulate: two runs of one scenario are equal byte for byte', () => {
  const text = () => JSON.stringify(run(workload))
  expect(text()).toBe(text())
})

it('simulate: times of lines never go back, and no item settles twice', () => {
  const { lines, summary } = run(workload)
  const settled = new Set<string>()
  let last = 0
  for (const line of lines) {
    expect(line.atUs).toBeGreaterThanOrEqual(last)
    last = line.atUs
    if (line.type !== 'settle') continue
    for (const [item] of line.results) {
      expect(settled.has(item)).toBe(false)
      settled.add(item)
    }
  }
  expect(settled.size + summary.left).toBe(summary.items)
})

it('simulate: a trace of a million items runs in bounded memory', () => {
  const folder = temporaryFolder()
  writeTrace(join(folder, 't.csv'), 1_000_000)
  const scenario = {
    config: { maxQueuedTokens: 500_000 },
    consumers: [gpu({ tokens: 16_384, batchSize: 2048, service: { fixedUs: 100 } })],
    events: [{ atUs: 0, trace: 't.csv', thenFlush: true }],
  }
  const simulation = new Simulation(parseScenario(JSON.stringify(scenario), { folder }))
  let most = 0
  const before = used()
  for (let instant = 0; simulation.advance(); instant++) {
    if (instant % 20_000 === 0) most = Math.max(most, used())
  }
  const summary = simulation.summary()
  expect(summary).toMatchObject({ items: 1_000_000, left: 0, settled: { completed: 1_000_000 } })
  // 17 bytes a digest of every id that came (S36), the queue, and what is not collected yet.
  expect(most - before).toBeLessThan(120 * 1024 * 1024)
}, 120_000)

function used(): number {
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

function writeTrace(path: string, rows: number): void {
  const file = openSync(path, 'w')
  let text = 'at_us,model,length\n'
  for (let row = 0; row < rows; row++) {
    text += `${Math.floor(row / 50) * 50},1,${1 + ((row * 7919) % 97)}\n`
    if (text.length < 1 << 20) continue
    writeSync(file, text)
    text = ''
  }
  writeSync(file, text)
  closeSync(file)
}

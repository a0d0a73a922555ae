// The main job with real processes, a real ring and a tiny random model.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { writeTinyModelDir } from '@fabric/encoder-onnx'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { seededRandom } from '../src/random.js'
import { Workload, type WorkloadOptions } from '../src/workload.js'

const contract = { batchSize: 128, tokens: 1024, inputLength: 128, model: 1 }
const modelDir = mkdtempSync(join(tmpdir(), 'fabric-tiny-'))

beforeAll(() => {
  writeTinyModelDir(modelDir, 7, { config: { num_hidden_layers: 1 } })
})
afterAll(() => rmSync(modelDir, { recursive: true, force: true }))

function items(count: number): { id: string; tokens: number[] }[] {
  const random = seededRandom(11)
  return Array.from({ length: count }, (_, i) => {
    const length = 4 + Math.floor(random() ** 3 * 116)
    return {
      id: `item-${i}`,
      tokens: Array.from({ length }, () => 1 + Math.floor(random() * 2000)),
    }
  })
}

async function runThrough(count: number, options: Partial<WorkloadOptions> = {}) {
  const workload = new Workload({
    contract,
    consumers: ['gpu0', 'gpu1'],
    modelDir,
    brokerArgs: ['--max-queued-tokens', '49152'],
    clientArgs: ['--quiet'],
    ...options,
  })
  try {
    const input = items(count)
    writeFileSync(workload.input, input.map((item) => `${JSON.stringify(item)}\n`).join(''))
    const outcome = await workload.run()
    const lines = readFileSync(workload.output, 'utf8').trimEnd().split('\n')
    return { outcome, input, output: lines.map((line) => JSON.parse(line)) }
  } finally {
    await workload.close()
  }
}

test('a ragged workload runs through two consumers and every item comes back once, in order', async () => {
  const { outcome, input, output } = await runThrough(2_000)
  expect(output.map((line) => line.id)).toEqual(input.map((item) => item.id))
  expect(output.every((line) => line.status === 'completed' && line.result.length > 0)).toBe(true)
  expect(outcome.state.items).toMatchObject({ waiting: 0, leased: 0 })
  expect(outcome.state.batches.normalClosedBy.item_limit).toBe(0)
  expect(outcome.state.consumers.map((each) => each.transport)).toEqual(['ring', 'ring'])
})

test('kill -9 of a consumer in the middle: the other finishes, every item has exactly one result', async () => {
  const { outcome, input, output } = await runThrough(4_000, {
    killAt: { share: 0.2, items: 4_000 },
  })
  expect(outcome.killed).toBe('gpu0')
  expect(output.map((line) => line.id)).toEqual(input.map((item) => item.id))
  expect(output.every((line) => line.status === 'completed')).toBe(true)
  expect(outcome.state.items).toMatchObject({
    waiting: 0,
    leased: 0,
    settled: { completed: 4_000 },
  })
  expect(outcome.state.consumers.map((each) => each.name)).toEqual(['gpu1'])
})

test('without huge pages the run works, and says on what its rings stand', async () => {
  const { outcome, output } = await runThrough(500, {
    brokerArgs: ['--huge-pages', 'off'],
    consumers: ['gpu0'],
  })
  expect(output).toHaveLength(500)
  expect(outcome.state.consumers[0].ring).toMatchObject({ pages: 'base', pageSizeBytes: 4096 })
  expect(outcome.state.consumers[0].ring?.pagesReason).toMatch(/4 KiB/)
})

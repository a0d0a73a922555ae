import { describe, expect, test } from 'vitest'
import { randomTinyModel, type TinyModelOptions } from '../src/index.js'
import { embed, maxDifference, meanPooled, openGraph, run } from './engine.js'

const ROWS = [
  [101, 7, 2000, 102],
  [101, 102],
  Array.from({ length: 40 }, (_, i) => (i * 37) % 2048),
]
const open = (seed: number, options: TinyModelOptions = {}) =>
  openGraph(randomTinyModel(seed, options).onnx)

describe('tiny model', () => {
  test('the same seed gives the same bytes, another seed others', () => {
    const first = randomTinyModel(1).onnx
    expect(Buffer.compare(first, randomTinyModel(1).onnx)).toBe(0)
    expect(Buffer.compare(first, randomTinyModel(2).onnx)).not.toBe(0)
    expect(first.byteLength).toBeLessThan(1.5 * 2 ** 20)
  })

  test('int64 inputs and a token type input change nothing in the embeddings', async () => {
    const plain = await run(await open(1), ROWS)
    for (const options of [{ inputType: 'int64' }, { tokenTypeIds: true }] as const) {
      const other = await run(await open(1, options), ROWS)
      expect(maxDifference(plain.data, other.data)).toBeLessThan(1e-6)
    }
  })

  test('the embedding is the masked mean of the last hidden state at length one', async () => {
    const pooled = await embed(await open(1), ROWS)
    const hidden = await run(await open(1, { output: 'last_hidden_state' }), ROWS)
    expect(hidden.dims).toEqual([3, 40, 64])
    meanPooled(hidden, ROWS).forEach((row, i) => {
      expect(maxDifference(row, pooled[i])).toBeLessThan(1e-5)
    })
  })

  test('a row gives the same embedding alone and padded among longer ones', async () => {
    const session = await open(3)
    const together = await embed(session, ROWS)
    for (const [i, row] of ROWS.entries()) {
      const [alone] = await embed(session, [row])
      expect(maxDifference(alone, together[i])).toBeLessThan(1e-5)
    }
  })

  test('different rows give different embeddings', async () => {
    const [a, b] = await embed(await open(1), ROWS)
    expect(maxDifference(a, b)).toBeGreaterThan(0.01)
  })

  test('an empty row gives zeros, not NaN', async () => {
    const [, empty] = await embed(await open(1), [[101, 102], []])
    expect(maxDifference(empty, new Float32Array(64))).toBe(0)
  })
})

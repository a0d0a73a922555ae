// The pool with real threads (so from dist): order, bounds, close, failure.
import { describe, expect, it, onTestFinished } from 'vitest'
import { TokenizerPool, type TokenizerPoolOptions } from '../dist/index.js'
import { loadTokenizer } from '../src/tokenizer/load.js'
import { IdBuffer } from '../src/tokenizer/tokenizer.js'
import { BERT_TOKENIZER, glosses } from './support/texts.js'

async function openPool(options: Partial<TokenizerPoolOptions> = {}): Promise<TokenizerPool> {
  const pool = await TokenizerPool.open({ tokenizer: BERT_TOKENIZER, ...options })
  onTestFinished(() => pool.close())
  return pool
}

describe('tokenizer pool', () => {
  it('gives every batch its own ids, in order, whichever worker was faster', async () => {
    const pool = await openPool({ workers: 3, queue: 2 })
    const texts = glosses().slice(0, 4000)
    const batches = Array.from({ length: 80 }, (_, i) => texts.slice(i * 50, (i + 1) * 50))
    batches[0] = Array(50).fill(texts.join(' ')) // by far the slowest comes first
    const encoded = await Promise.all(batches.map((batch) => pool.encode(batch)))

    const tokenizer = loadTokenizer(BERT_TOKENIZER)
    encoded.forEach(({ ids, lengths }, i) => {
      const expected = new IdBuffer()
      const counts = batches[i].map((text) => tokenizer.encode(text, expected))
      expect([...lengths]).toEqual(counts)
      expect(
        Buffer.from(ids.buffer).equals(Buffer.from(expected.ids.slice(0, expected.length).buffer)),
      ).toBe(true)
    })
  })

  it('serves every tokenizer it was opened with and says which', async () => {
    expect((await openPool({ workers: 1 })).kind).toBe('wordpiece')
    const general = await openPool({ workers: 2, general: true, maxLength: 4 })
    expect([general.kind, general.workers]).toEqual(['huggingface', 2])
    expect([...(await general.encode(['one two three four'])).ids]).toEqual([101, 2028, 2048, 102])
  })

  it('answers an empty batch, and a text without a word', async () => {
    const pool = await openPool()
    expect((await pool.encode([])).lengths).toHaveLength(0)
    expect([...(await pool.encode(['', '\u200b'])).ids]).toEqual([101, 102, 101, 102])
  })

  it('rejects what is waiting, and what comes later, once it is closed', async () => {
    const pool = await openPool({ workers: 1, queue: 1 })
    const texts = [glosses().join(' ')]
    const pending = Array.from({ length: 5 }, () => pool.encode(texts))
    const settled = Promise.allSettled(pending)
    await pool.close()
    const reasons = (await settled).filter((s) => s.status === 'rejected').map((s) => s.reason.code)
    expect(reasons).toHaveLength(5)
    expect(new Set(reasons)).toEqual(new Set(['FABRIC_TOKENIZER']))
    await expect(pool.encode(texts)).rejects.toMatchObject({ code: 'FABRIC_TOKENIZER' })
  })

  it('does not open with a tokenizer that cannot be read', async () => {
    await expect(openPool({ tokenizer: '/nonexistent.json', workers: 2 })).rejects.toMatchObject({
      code: 'FABRIC_TOKENIZER',
      field: 'tokenizer',
    })
  })
})

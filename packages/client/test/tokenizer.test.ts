// The fast path against its oracle, @huggingface/tokenizers, and what chooses between the two.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { loadTokenizer, type TokenizerOptions } from '../src/tokenizer/load.js'
import { IdBuffer, type Tokenizer } from '../src/tokenizer/tokenizer.js'
import {
  BERT_TOKENIZER,
  type BertJson,
  bertJson,
  glosses,
  sentences,
  temporaryFolder,
  writeFile,
} from './support/texts.js'

const idsOf = (tokenizer: Tokenizer, text: string): number[] => {
  const out = new IdBuffer(2)
  const count = tokenizer.encode(text, out)
  expect(count).toBe(out.length)
  return [...out.ids.subarray(0, count)]
}

const fast = loadTokenizer(BERT_TOKENIZER)
const oracle = loadTokenizer(BERT_TOKENIZER, { general: true })
const expectSame = (text: string): void => {
  expect(idsOf(fast, text), JSON.stringify(text)).toEqual(idsOf(oracle, text))
}

function load(change: (json: BertJson) => unknown, options: TokenizerOptions = {}): Tokenizer {
  const json = bertJson()
  change(json)
  return loadTokenizer(
    writeFile(temporaryFolder(), 'tokenizer.json', JSON.stringify(json)),
    options,
  )
}

describe('tokenizer: the fast path', () => {
  it('serves an uncased BERT file and writes [CLS] text [SEP]', () => {
    expect([fast.kind, oracle.kind]).toEqual(['wordpiece', 'huggingface'])
    expect(idsOf(fast, 'Hello, embeddings')).toEqual([101, 7592, 1010, 7861, 8270, 4667, 2015, 102])
  })

  it('gives the ids of the oracle for dictionary glosses and corpus sentences', () => {
    for (const texts of [glosses(), sentences()]) {
      for (let i = 0; i < texts.length; i += 23) expectSame(texts[i])
    }
  })

  it('gives the ids of the oracle for any unicode text', () => {
    const text = fc.string({ unit: 'binary', maxLength: 60 })
    const grapheme = fc.string({ unit: 'grapheme', maxLength: 60 })
    const units = fc
      .array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 40 })
      .map((codes) => String.fromCharCode(...codes))
    fc.assert(fc.property(fc.oneof(text, grapheme, units), expectSame), { numRuns: 3000 })
  })

  it('gives the ids of the oracle around added tokens, accents, CJK, emoji and control characters', () => {
    const part = fc.constantFrom(
      ...[
        '[MASK]',
        '[SEP]',
        '[CLS',
        'UNK]',
        '[',
        ' ',
        '\t',
        '\u0000',
        '\u00ad',
        '\u200b',
        '\ufeff',
      ],
      ...['Ünïcödé', 'ΑΣ', 'ΣΑ.', 'İstanbul', 'ǅ', 'ﬁ', '≠', '\u037e', '中文', '한국어', 'x\u0301'],
      ...['𝒳', '😀', '\ud83d', '\ude00', '𠀀', '𐄀', '\u2028', '\u3000', "don't", '$1.50', 'naïve'],
      ...['a'.repeat(100), 'a'.repeat(101), '𝒳'.repeat(60), 'unaffable', '##ing', '�', '\u180e'],
    )
    const text = fc.array(part, { maxLength: 12 }).map((parts) => parts.join(''))
    fc.assert(fc.property(text, expectSame), { numRuns: 3000 })
  })

  it('gives the ids of the oracle for every character by itself and within a word', () => {
    for (let code = 0; code < 0x11000; code++) {
      const char = String.fromCodePoint(code)
      const text = `a${char}b`
      if (code % 7 === 0 || code < 0x3100) expectSame(text)
    }
  })
})

describe('tokenizer: the choice of implementation', () => {
  const others: [string, (json: BertJson) => unknown][] = [
    ['a cased normalizer', (json) => (json.normalizer.lowercase = false)],
    ['kept accents', (json) => (json.normalizer.strip_accents = false)],
    ['another pre-tokenizer', (json) => (json.pre_tokenizer = { type: 'Whitespace' })],
    ['no closing token', (json) => json.post_processor.single?.pop()],
    ['a normalized added token', (json) => (json.added_tokens[4].normalized = true)],
    ['an added token that eats spaces', (json) => (json.added_tokens[4].lstrip = true)],
  ]
  it.each(others)('leaves a file with %s to the general adapter', (_, change) => {
    expect(load(change).kind).toBe('huggingface')
  })

  it('takes the older spelling of the post-processor too', () => {
    const older = load((json) => {
      json.post_processor = { type: 'BertProcessing', sep: ['[SEP]', 102], cls: ['[CLS]', 101] }
    })
    expect(older.kind).toBe('wordpiece')
    expect(idsOf(older, 'a b')).toEqual(idsOf(fast, 'a b'))
  })
})

describe('tokenizer: truncation', () => {
  const text = 'unaffable '.repeat(20)
  it.each([true, false])('keeps the first ids and [SEP] last (general: %s)', (general) => {
    const whole = idsOf(oracle, text)
    const cut = idsOf(loadTokenizer(BERT_TOKENIZER, { general, maxLength: 10 }), text)
    expect(cut).toEqual([...whole.slice(0, 9), 102])
  })

  it('leaves a text alone that fits', () => {
    const cut = loadTokenizer(BERT_TOKENIZER, { maxLength: 8 })
    expect(idsOf(cut, 'Hello, embeddings')).toEqual(idsOf(fast, 'Hello, embeddings'))
  })
})

describe('tokenizer: a file that cannot be used', () => {
  const folder = () => temporaryFolder()
  it.each([
    ['is missing', () => `${folder()}/none.json`, /no such file/],
    ['is a folder without one', () => folder(), /cannot be read/],
    ['is not JSON', () => writeFile(folder(), 'tokenizer.json', '{'), /not JSON/],
    ['is of an unknown kind', () => writeFile(folder(), 't.json', '{"model":{}}'), /not supported/],
  ])('is refused with FABRIC_TOKENIZER when it %s', (_, path, message) => {
    expect(() => loadTokenizer(path())).toThrow(
      expect.objectContaining({
        code: 'FABRIC_TOKENIZER',
        message: expect.stringMatching(message),
      }),
    )
  })

  it('may be named by its folder', () => {
    const json = writeFile(folder(), 'tokenizer.json', JSON.stringify(bertJson()))
    expect(loadTokenizer(json.slice(0, json.lastIndexOf('/'))).kind).toBe('wordpiece')
  })
})

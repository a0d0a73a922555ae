// The general adapter: every tokenizer.json that @huggingface/tokenizers reads (BPE, Unigram,
// WordPiece, any normalizer). Several times slower than the fast path, and its test oracle.
import { Tokenizer as HuggingFace } from '@huggingface/tokenizers'
import type { IdBuffer, Tokenizer } from './tokenizer.js'

/** Ids that the post-processor puts behind a text; found by comparing with and without them. */
function suffixOf(tokenizer: HuggingFace): number[] {
  const bare: number[] = tokenizer.encode('a', { add_special_tokens: false }).ids
  const whole: number[] = tokenizer.encode('a').ids
  for (let at = 0; at + bare.length <= whole.length; at++) {
    if (bare.every((id, i) => whole[at + i] === id)) return whole.slice(at + bare.length)
  }
  return []
}

export class HuggingFaceTokenizer implements Tokenizer {
  readonly kind = 'huggingface'
  readonly #tokenizer: HuggingFace
  readonly #maxLength: number | undefined
  readonly #suffix: readonly number[]

  constructor(file: object, config: object, maxLength?: number) {
    this.#tokenizer = new HuggingFace(file, config)
    this.#maxLength = maxLength
    this.#suffix = maxLength === undefined ? [] : suffixOf(this.#tokenizer)
  }

  encode(text: string, out: IdBuffer): number {
    const start = out.length
    out.append(this.#tokenizer.encode(text).ids)
    if (this.#maxLength === undefined) return out.length - start
    return out.truncate(start, this.#maxLength, this.#suffix)
  }
}

// The fast path: an uncased BERT tokenizer (normalizer, pre-tokenizer, WordPiece, [CLS] text [SEP])
// that walks a text once and writes ids in place. Chosen by wordpiece-config.ts, only for files
// that say exactly this.
import { CHAR_CLASSES, CharClass, isPunctuationPair, normalized } from './bert-text.js'
import type { IdBuffer, Tokenizer } from './tokenizer.js'

export interface WordPieceConfig {
  readonly vocab: ReadonlyMap<string, number>
  readonly unknownId: number
  readonly prefixId: number
  readonly suffixId: number
  readonly continuingPrefix: string
  readonly maxCharsPerWord: number
  /** Contents that are one token wherever they stand in a text, such as [MASK]. */
  readonly addedTokens: ReadonlyMap<string, number>
  readonly maxLength?: number | undefined
}

/** Words that need several pieces and are remembered. Natural text repeats far fewer. */
const CACHED_WORDS_MAX = 1 << 16

const escaped = (text: string) => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')

/** A slice of a long string keeps all of it alive; a cache key must not. */
const detached = (word: string) => Buffer.from(word, 'utf16le').toString('utf16le')

function addedTokenPattern(contents: Iterable<string>): RegExp | null {
  const longestFirst = [...contents].filter((c) => c !== '').sort((a, b) => b.length - a.length)
  return longestFirst.length === 0 ? null : new RegExp(longestFirst.map(escaped).join('|'), 'g')
}

export class WordPieceTokenizer implements Tokenizer {
  readonly kind = 'wordpiece'
  readonly #config: WordPieceConfig
  readonly #whole: ReadonlyMap<string, number>
  /** Pieces that go on within a word, without their prefix. */
  readonly #continuing = new Map<string, number>()
  readonly #longestPiece: number
  readonly #cache = new Map<string, readonly number[]>()
  readonly #added: RegExp | null

  constructor(config: WordPieceConfig) {
    this.#config = config
    this.#whole = config.vocab
    let longest = 1
    for (const [piece, id] of config.vocab) {
      longest = Math.max(longest, piece.length)
      if (piece.startsWith(config.continuingPrefix)) {
        this.#continuing.set(piece.slice(config.continuingPrefix.length), id)
      }
    }
    this.#longestPiece = longest
    this.#added = addedTokenPattern(config.addedTokens.keys())
  }

  encode(text: string, out: IdBuffer): number {
    const start = out.length
    out.reserve(1)
    out.ids[out.length++] = this.#config.prefixId
    if (this.#added !== null && text.includes('[')) this.#encodeWithAdded(text, out)
    else this.#encodeSection(text, out)
    out.reserve(1)
    out.ids[out.length++] = this.#config.suffixId
    const { maxLength } = this.#config
    if (maxLength === undefined) return out.length - start
    return out.truncate(start, maxLength, [this.#config.suffixId])
  }

  #encodeWithAdded(text: string, out: IdBuffer): void {
    let from = 0
    for (const match of text.matchAll(this.#added!)) {
      this.#encodeSection(text.slice(from, match.index), out)
      out.append([this.#config.addedTokens.get(match[0])!])
      from = match.index + match[0].length
    }
    this.#encodeSection(text.slice(from), out)
  }

  #encodeSection(section: string, out: IdBuffer): void {
    const text = normalized(section)
    out.reserve(text.length) // no word has more pieces than code units
    let wordStart = -1
    for (let i = 0; i < text.length; i++) {
      let kind = CHAR_CLASSES[text.charCodeAt(i)]
      let units = 1
      if (kind === CharClass.surrogate) {
        kind = isPunctuationPair(text, i) ? CharClass.punctuation : CharClass.word
        units = 2
      }
      if (kind === CharClass.space || kind === CharClass.punctuation) {
        if (wordStart >= 0) this.#encodeWord(text.slice(wordStart, i), out)
        wordStart = -1
        if (kind === CharClass.punctuation) this.#encodeWord(text.slice(i, i + units), out)
      } else if (wordStart < 0) wordStart = i
      i += units - 1
    }
    if (wordStart >= 0) this.#encodeWord(text.slice(wordStart), out)
  }

  #encodeWord(word: string, out: IdBuffer): void {
    const id = this.#whole.get(word)
    if (id !== undefined && word.length <= this.#config.maxCharsPerWord) {
      out.ids[out.length++] = id
      return
    }
    let pieces = this.#cache.get(word)
    if (pieces === undefined) {
      pieces = this.#split(word)
      if (this.#cache.size >= CACHED_WORDS_MAX) this.#cache.clear()
      this.#cache.set(detached(word), pieces)
    }
    for (let i = 0; i < pieces.length; i++) out.ids[out.length++] = pieces[i]
  }

  /** Longest piece first; a word with a part that is no piece is unknown as a whole. */
  #split(word: string): readonly number[] {
    const unknown = [this.#config.unknownId]
    if (word.length > this.#config.maxCharsPerWord) {
      if ([...word].length > this.#config.maxCharsPerWord) return unknown
    }
    const pieces: number[] = []
    for (let from = 0; from < word.length; ) {
      const table = from === 0 ? this.#whole : this.#continuing
      let to = Math.min(word.length, from + this.#longestPiece)
      let id = table.get(word.slice(from, to))
      while (id === undefined && --to > from) id = table.get(word.slice(from, to))
      if (id === undefined) return unknown
      pieces.push(id)
      from = to
    }
    return pieces
  }
}

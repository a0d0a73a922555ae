// Characters as an uncased BERT tokenizer sees them: what its normalizer drops, spaces out, lowers
// and strips, and what its pre-tokenizer splits at. Follows BertNormalizer and BertPreTokenizer of
// @huggingface/tokenizers code unit by code unit, quirks included: that package is the test oracle.

export const CharClass = {
  word: 0,
  space: 1,
  punctuation: 2,
  drop: 3,
  cjk: 4,
  surrogate: 5,
} as const
export type CharClass = (typeof CharClass)[keyof typeof CharClass]

const PUNCTUATION = /^[\p{P}!-/:-@[-`{-~]$/u
const CONTROL = /^[\p{Cc}\p{Cf}\p{Co}\p{Cs}]$/u

const isCjk = (c: number) =>
  (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) || (c >= 0xf900 && c <= 0xfaff)

function classOf(c: number): CharClass {
  if (c >= 0xd800 && c <= 0xdfff) return CharClass.surrogate
  const char = String.fromCharCode(c)
  if (c === 9 || c === 10 || c === 13) return CharClass.space
  if (c === 0 || c === 0xfffd || CONTROL.test(char)) return CharClass.drop
  if (/\s/.test(char)) return CharClass.space
  if (PUNCTUATION.test(char)) return CharClass.punctuation
  return isCjk(c) ? CharClass.cjk : CharClass.word
}

/** Class of each UTF-16 code unit. */
export const CHAR_CLASSES: Uint8Array = Uint8Array.from({ length: 0x10000 }, (_, c) => classOf(c))

/** The code point of two units at `i`, or '' for a surrogate that stands alone. */
function pairAt(text: string, i: number): string {
  const point = text.codePointAt(i)!
  return point > 0xffff ? String.fromCodePoint(point) : ''
}

export const isPunctuationPair = (text: string, i: number): boolean =>
  PUNCTUATION.test(pairAt(text, i))

/** Drops what is not text, turns every space into ' ', and sets CJK characters apart. */
function cleaned(text: string): string {
  let out = ''
  let from = 0
  const flush = (to: number, next: number, instead: string) => {
    out += text.slice(from, to) + instead
    from = next
  }
  for (let i = 0; i < text.length; i++) {
    const kind = CHAR_CLASSES[text.charCodeAt(i)]
    if (kind === CharClass.drop) flush(i, i + 1, '')
    else if (kind === CharClass.space) flush(i, i + 1, ' ')
    else if (kind === CharClass.cjk) flush(i, i + 1, ` ${text[i]} `)
    else if (kind === CharClass.surrogate) {
      const pair = pairAt(text, i)
      if (pair === '') flush(i, i + 1, '')
      else if (CONTROL.test(pair)) flush(i, ++i + 1, '')
      else i++
    }
  }
  return out + text.slice(from)
}

/** True when lower-casing is all that the normalizer would do. */
function isPlain(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (c > 127 || CHAR_CLASSES[c] === CharClass.drop) return false
  }
  return true
}

export function normalized(text: string): string {
  if (isPlain(text)) return text.toLowerCase()
  // The whole text is lowered at once: a final sigma depends on what follows it.
  return cleaned(text)
    .toLowerCase()
    .normalize('NFD')
    .replace(/\p{Mn}+/gu, '')
}

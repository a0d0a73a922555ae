// Decides whether a tokenizer.json is exactly what the fast path implements. Anything else, one
// flag apart, goes to the general adapter: a tokenizer that is nearly right trains nobody's trust.
import type { WordPieceConfig } from './wordpiece.js'

type Json = Record<string, unknown>

interface AddedToken {
  id: number
  content: string
  single_word?: boolean
  lstrip?: boolean
  rstrip?: boolean
  special?: boolean
  normalized?: boolean
}

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null

function isUncasedNormalizer(value: unknown): boolean {
  if (!isObject(value) || value.type !== 'BertNormalizer') return false
  const { clean_text, handle_chinese_chars, lowercase, strip_accents } = value
  return (
    clean_text === true &&
    handle_chinese_chars === true &&
    lowercase === true &&
    strip_accents !== false
  )
}

/** The contents before and after the text: `[CLS] A [SEP]` in either of its two spellings. */
function template(value: unknown): [string, string] | null {
  if (!isObject(value)) return null
  if (value.type === 'BertProcessing') {
    const [cls, sep] = [value.cls, value.sep]
    return Array.isArray(cls) && Array.isArray(sep) ? [String(cls[0]), String(sep[0])] : null
  }
  if (value.type !== 'TemplateProcessing' || !Array.isArray(value.single)) return null
  if (value.single.length !== 3) return null
  const [first, middle, last] = value.single as Record<string, { id?: unknown } | undefined>[]
  if (middle.Sequence?.id !== 'A') return null
  const [prefix, suffix] = [first.SpecialToken?.id, last.SpecialToken?.id]
  return typeof prefix === 'string' && typeof suffix === 'string' ? [prefix, suffix] : null
}

/** Null when one of them is matched in a way that the fast path does not implement. */
function addedTokens(value: unknown): Map<string, number> | null {
  const tokens = (Array.isArray(value) ? value : []) as AddedToken[]
  const found = new Map<string, number>()
  for (const token of tokens) {
    const isNormalized = token.normalized ?? !token.special
    if (isNormalized || token.lstrip || token.rstrip || token.single_word) return null
    if (!token.content.startsWith('[')) return null // what the fast path looks for first
    found.set(token.content, token.id)
  }
  return found
}

/** Null when the file is not an uncased BERT WordPiece tokenizer. */
export function wordPieceConfig(file: Json): WordPieceConfig | null {
  const { model } = file
  if (!isObject(model) || model.type !== 'WordPiece' || model.fuse_unk === true) return null
  if (!isUncasedNormalizer(file.normalizer)) return null
  if (!isObject(file.pre_tokenizer) || file.pre_tokenizer.type !== 'BertPreTokenizer') return null
  const ends = template(file.post_processor)
  const added = addedTokens(file.added_tokens)
  if (ends === null || added === null || !isObject(model.vocab)) return null

  const vocab = new Map([...Object.entries(model.vocab as Record<string, number>), ...added])
  const unknownId = vocab.get(String(model.unk_token))
  const [prefixId, suffixId] = ends.map((content) => vocab.get(content))
  if (unknownId === undefined || prefixId === undefined || suffixId === undefined) return null
  return {
    vocab,
    unknownId,
    prefixId,
    suffixId,
    continuingPrefix: String(model.continuing_subword_prefix ?? '##'),
    maxCharsPerWord: Number(model.max_input_chars_per_word ?? 100),
    addedTokens: added,
  }
}

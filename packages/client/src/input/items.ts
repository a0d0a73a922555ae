// From an input file to items ready to submit: lines are parsed, texts tokenised in the pool, order
// kept. Bad lines pass through as they are.
import { FabricError } from '@fabric/protocol'
import type { TokenizerPool } from '../tokenizer/pool.js'
import { readLines } from './lines.js'
import { mapOrdered } from './ordered.js'
import { type InputLine, type ItemLine, isBad, type ParseOptions, parseLine } from './parse.js'

export interface InputOptions extends ParseOptions {
  /** A file, or '-'. */
  readonly input: string
  /** Null when none was given: lines with text are then refused. */
  readonly pool: TokenizerPool | null
}

/** Large enough to make a message to a worker cheap, small enough to keep all workers busy. */
const BATCH_LINES_MAX = 512
const BATCH_CHARS_MAX = 256 << 10

export const needsTokenizer = (textField: string) =>
  new FabricError(
    'FABRIC_TEXT_NEEDS_TOKENIZER',
    `the input holds "${textField}": give --tokenizer with the model's tokenizer.json or its folder`,
    { field: textField },
  )

async function* batchesOf({
  input,
  textField,
  idField,
}: InputOptions): AsyncGenerator<InputLine[]> {
  let batch: InputLine[] = []
  let chars = 0
  let position = 0
  for await (const lines of readLines(input)) {
    for (const raw of lines) {
      batch.push(parseLine(raw, position++, { textField, idField }))
      chars += raw.text?.length ?? 0
      if (batch.length < BATCH_LINES_MAX && chars < BATCH_CHARS_MAX) continue
      yield batch
      batch = []
      chars = 0
    }
    // A pipe that pauses must not hold back what it has given.
    if (input === '-' && batch.length > 0) {
      yield batch
      batch = []
      chars = 0
    }
  }
  if (batch.length > 0) yield batch
}

const textOf = (line: InputLine): string | undefined => (isBad(line) ? undefined : line.text)

async function tokenised(batch: InputLine[], pool: TokenizerPool): Promise<InputLine[]> {
  const texts = batch.map(textOf).filter((text) => text !== undefined)
  if (texts.length === 0) return batch
  const { ids, lengths } = await pool.encode(texts)
  let next = 0
  let at = 0
  return batch.map((line) => {
    if (textOf(line) === undefined) return line
    const { text: _, ...item } = line as ItemLine
    const tokens = ids.subarray(at, at + lengths[next])
    at += lengths[next++]
    return { ...item, tokens }
  })
}

/** A text that comes after the first line is one bad line; see `readItems`. */
function withoutTokenizer(batch: InputLine[], textField: string): InputLine[] {
  return batch.map((line) => {
    if (textOf(line) === undefined) return line
    const { id, position } = line
    const error = { ...needsTokenizer(textField).toBody(), line: line.line }
    return { id, position, line: line.line, error }
  })
}

/**
 * Blocks of lines in input order.
 * @throws FabricError FABRIC_INPUT when the file cannot be read; FABRIC_TEXT_NEEDS_TOKENIZER when
 * its first item is a text and there is no pool: then the whole run needs one.
 */
export async function* readItems(options: InputOptions): AsyncGenerator<InputLine[]> {
  const { pool, textField } = options
  if (pool !== null) {
    yield* mapOrdered(batchesOf(options), 2 * pool.workers + 1, (batch) => tokenised(batch, pool))
    return
  }
  let sawItem = false
  for await (const batch of batchesOf(options)) {
    const first = sawItem ? undefined : batch.find((line) => !isBad(line))
    if (first !== undefined) {
      sawItem = true
      if (textOf(first) !== undefined) throw needsTokenizer(textField)
    }
    yield withoutTokenizer(batch, textField)
  }
}

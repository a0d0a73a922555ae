// One line of an input file as an item, or why it is none. Only what the broker cannot know is
// decided here (JSON, text, id); tokens and payloads the broker checks.
import type { ErrorBody } from '@fabric/protocol'
import type { RawLine } from './lines.js'

export interface LineError extends ErrorBody {
  readonly line: number
}

export interface ItemLine {
  readonly line: number
  /** Place among the lines that are not blank, from 0: the place in an ordered output. */
  readonly position: number
  readonly id: string
  readonly text?: string
  readonly tokens?: ArrayLike<number>
  readonly payload?: string
  readonly length?: number
}

export interface BadLine {
  readonly line: number
  readonly position: number
  readonly id: string
  readonly error: LineError
}

export type InputLine = ItemLine | BadLine

export interface ParseOptions {
  readonly textField: string
  readonly idField: string
}

export const isBad = (line: InputLine): line is BadLine => 'error' in line

const shown = (value: unknown): string => {
  const text = JSON.stringify(value)
  return text.length > 40 ? `${text.slice(0, 40)}…` : text
}

const kindOf = (value: unknown) =>
  value === null ? 'null' : Array.isArray(value) ? 'an array' : `a ${typeof value}`

class Refusal {
  constructor(
    readonly message: string,
    readonly field?: string,
  ) {}
}

function objectOf(text: string | null): Record<string, unknown> {
  if (text === null) throw new Refusal('the line is too long')
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new Refusal(`not JSON: ${(error as Error).message}`)
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return value as Record<string, unknown>
  }
  throw new Refusal(`an item is a JSON object, this is ${kindOf(value)}`)
}

function idOf(value: unknown, field: string, line: number): string {
  if (value === undefined || value === null) return String(line)
  if (typeof value !== 'string')
    throw new Refusal(`an id is a string, this is ${shown(value)}`, field)
  if (value === '') throw new Refusal('the id is empty', field)
  return value
}

function textOf(value: unknown, field: string): string {
  if (value === undefined) {
    throw new Refusal(`there is no "${field}", no "tokens" and no "payload"`, field)
  }
  if (typeof value !== 'string')
    throw new Refusal(`a text is a string, this is ${shown(value)}`, field)
  if (value.trim() === '') throw new Refusal('the text is empty', field)
  return value
}

/** The place of the next line is the caller's to count. */
export function parseLine(raw: RawLine, position: number, options: ParseOptions): InputLine {
  const at = { line: raw.number, position }
  let id = String(raw.number)
  try {
    const fields = objectOf(raw.text)
    id = idOf(fields[options.idField], options.idField, raw.number)
    const { tokens, payload, length } = fields
    if (tokens === undefined && payload === undefined) {
      return { ...at, id, text: textOf(fields[options.textField], options.textField) }
    }
    // What is wrong with these the broker says, naming the field.
    const given = { tokens, payload, length } as Partial<ItemLine>
    return { ...at, id, ...given }
  } catch (refusal) {
    if (!(refusal instanceof Refusal)) throw refusal
    const { message, field } = refusal
    const error = { code: 'FABRIC_INPUT' as const, message, line: raw.number }
    return { ...at, id, error: field === undefined ? error : { ...error, field } }
  }
}

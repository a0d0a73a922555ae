// The file that a plant's client writes: how far it is while it is written, and whether it holds each
// item's own result exactly once.
import { readFileSync } from 'node:fs'
import { Tail } from './tail.js'

export interface Item {
  readonly id: string
  readonly tokens: readonly number[]
}

export interface OutputCheck {
  readonly lines: number
  /** Ids, as often as they are there too many. */
  readonly duplicates: readonly string[]
  /** Ids. */
  readonly lost: readonly string[]
  /** Lines that are no item's own result. */
  readonly wrong: readonly string[]
}

interface Record {
  readonly id?: string
  readonly status?: string
  readonly result?: { readonly length: number; readonly sum: number } | null
}

function recordOf(line: string): Record | null {
  try {
    return JSON.parse(line)
  } catch {
    return null
  }
}

const isOf = ({ tokens }: Item, { status, result }: Record): boolean =>
  status === 'completed' &&
  result?.length === tokens.length &&
  result.sum === tokens.reduce((sum, token) => sum + token, 0)

export class Output {
  readonly #tail: Tail
  #lines = 0

  constructor(readonly path: string) {
    this.#tail = new Tail(path)
  }

  /** Whole lines so far; asks no process. */
  get lines(): number {
    this.#lines += this.#tail.read().length
    return this.#lines
  }

  check(items: readonly Item[]): OutputCheck {
    const text = readFileSync(this.path, 'utf8')
    const lines = text.split('\n')
    const wrong = lines.pop() === '' ? [] : ['the last line is not whole']
    const expected = new Map(items.map((item) => [item.id, item]))
    const seen = new Set<string>()
    const duplicates: string[] = []
    for (const line of lines) {
      const record = recordOf(line)
      const item = expected.get(record?.id ?? '')
      if (record === null || item === undefined) {
        wrong.push(line)
        continue
      }
      if (seen.has(item.id)) duplicates.push(item.id)
      seen.add(item.id)
      if (!isOf(item, record)) wrong.push(line)
    }
    const lost = items.filter(({ id }) => !seen.has(id)).map(({ id }) => id)
    return { lines: lines.length, duplicates, lost, wrong }
  }
}

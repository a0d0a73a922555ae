// Where the items of submitMany and trace come from: one at a time, in order of time, never all in
// memory.
import { CsvLines, cellsOf } from './csv-lines.js'
import type { Scenario } from './scenario/read.js'
import { refuse } from './scenario/refusal.js'
import type { EventData } from './scenario/schema.js'

const NS_PER_US = 1000
const INT32_MAX = 2 ** 31 - 1

export interface Source {
  /** When the next item comes; Infinity after the last. */
  readonly nextAtNs: number
  readonly model: number
  readonly length: number
  /** Moves on behind the item that the fields above describe. */
  advance(): void
}

/** What a sum or product of decimals may be short of a whole nanosecond: 1.001 us are 1,001. */
const SHORT_NS = 1e-4

/** A time of the scenario; fractions of a nanosecond are dropped. */
export const toNs = (us: number): number => Math.floor(us * NS_PER_US + SHORT_NS)

class ManySource implements Source {
  nextAtNs: number
  readonly model: number
  #index = 0

  constructor(
    private readonly atUs: number,
    private readonly many: NonNullable<EventData['submitMany']>,
  ) {
    this.nextAtNs = toNs(atUs)
    this.model = many.model
  }

  get length(): number {
    return this.many.lengths[this.#index % this.many.lengths.length]
  }

  advance(): void {
    const { count, everyUs } = this.many
    this.#index++
    const ended = this.#index >= count
    this.nextAtNs = ended ? Number.POSITIVE_INFINITY : toNs(this.atUs + this.#index * everyUs)
  }
}

const COLUMNS = ['at_us', 'model', 'length'] as const

class TraceSource implements Source {
  nextAtNs = 0
  model = 1
  length = 1
  readonly #lines: CsvLines
  readonly #columns: readonly number[]
  #lastAtUs = 0

  constructor(
    private readonly atUs: number,
    private readonly field: string,
    private readonly path: string,
  ) {
    this.#lines = openTrace(field, path)
    this.#columns = headerOf(field, path, this.#next())
    this.advance()
  }

  advance(): void {
    let line = this.#next()
    while (line === '') line = this.#next()
    if (line === null) {
      this.nextAtNs = Number.POSITIVE_INFINITY
      return
    }
    const cells = cellsOf(line)
    const [at, model, length] = this.#columns
    const atUs = this.#number(cells, at, 'at_us')
    if (atUs < this.#lastAtUs) this.#refuse(`at_us ${atUs} is before the line above it`)
    this.#lastAtUs = atUs
    this.model = model < 0 ? 1 : this.#integer(cells, model, 'model', 0)
    this.length = this.#integer(cells, length, 'length', 1)
    this.nextAtNs = toNs(this.atUs + atUs)
    if (!Number.isSafeInteger(this.nextAtNs)) this.#refuse(`at_us ${atUs} is too late`)
  }

  #next(): string | null {
    return nextLine(this.#lines, this.field, this.path)
  }

  #number(cells: readonly string[], column: number, name: string): number {
    const text = cells[column]?.trim() ?? ''
    const value = Number(text)
    if (text === '' || !(value >= 0 && value < Number.POSITIVE_INFINITY)) {
      this.#refuse(`${name} is ${JSON.stringify(text)}, expected a number, 0 or more`)
    }
    return value
  }

  #integer(cells: readonly string[], column: number, name: string, min: number): number {
    const value = this.#number(cells, column, name)
    if (!Number.isInteger(value) || value < min || value > INT32_MAX) {
      this.#refuse(`${name} is ${value}, expected an integer from ${min} to ${INT32_MAX}`)
    }
    return value
  }

  #refuse(message: string): never {
    refuse(this.field, `${this.path}, line ${this.#lines.number}: ${message}`)
  }
}

function openTrace(field: string, path: string): CsvLines {
  try {
    return new CsvLines(path)
  } catch (cause) {
    refuse(field, `${path} cannot be read (${(cause as Error).message})`)
  }
}

/** A folder, a disk that fails or a file without line ends shows only when it is read. */
function nextLine(lines: CsvLines, field: string, path: string): string | null {
  try {
    return lines.next()
  } catch (cause) {
    refuse(field, `${path} cannot be read (${(cause as Error).message})`)
  }
}

/** Places of at_us, model and length; -1 for a model column that is not there. */
function headerOf(field: string, path: string, line: string | null): number[] {
  if (line === null)
    refuse(field, `${path}: the file is empty, expected a header at_us,model,length`)
  const header = cellsOf(line.replace(/^\u00ef\u00bb\u00bf/, '')).map((cell) => cell.trim())
  return COLUMNS.map((column) => {
    const at = header.indexOf(column)
    if (at < 0 && column !== 'model') {
      refuse(field, `${path}: the header is ${JSON.stringify(line)}, expected at_us,model,length`)
    }
    return at
  })
}

export interface StreamData {
  readonly source: Source
  /** Number of its first item: m0, m1, … count through the events in their listed order. */
  readonly firstNumber: number
}

/** Opens the streams of a scenario, by place of their event. */
export function openStreams({ events, resolveTrace }: Scenario): Map<number, StreamData> {
  const streams = new Map<number, StreamData>()
  const last = events.findLastIndex((event) => isStream(event))
  let firstNumber = 0
  events.forEach((event, i) => {
    if (!isStream(event)) return
    const { atUs, submitMany, trace } = event
    if (submitMany !== undefined) {
      streams.set(i, { source: new ManySource(atUs, submitMany), firstNumber })
      firstNumber += submitMany.count
      return
    }
    const field = `events[${i}].trace`
    const path = resolveTrace(trace!)
    streams.set(i, { source: new TraceSource(atUs, field, path), firstNumber })
    // Only what stands behind it needs to know how many items it has.
    if (i < last) firstNumber += rowsOf(field, path)
  })
  return streams
}

const isStream = (event: EventData): boolean =>
  event.submitMany !== undefined || event.trace !== undefined

function rowsOf(field: string, path: string): number {
  const lines = openTrace(field, path)
  let rows = -1
  const next = () => nextLine(lines, field, path)
  for (let line = next(); line !== null; line = next()) if (line !== '') rows++
  return Math.max(0, rows)
}

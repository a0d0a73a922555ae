// What a user sees while a run goes on, on stderr: a bar with a status line below it on a terminal,
// a line every few seconds elsewhere, nothing when told so. Warnings go through here, so that they
// never land in the middle of a bar.
import { MultiBar, type SingleBar } from 'cli-progress'
import { count, duration, percent, short } from './format.js'
import { RateWindow } from './rate.js'
import type { RunStats } from './run-stats.js'
import type { StateView } from './state-view.js'

export interface Progress {
  /** A new look at the numbers, a few times a second; `state` is the broker's latest. */
  update(state: StateView | null): void
  warn(line: string): void
  /** A last look at the numbers, and the terminal is free again. */
  stop(): void
}

export interface Stderr {
  readonly isTTY?: boolean
  write(text: string): unknown
}

const LINE_EVERY_MS = 5_000
/** A warning is written over the bars, which are then drawn again below it. */
const ERASE_LINE = '\u001b[2K'

/** The bar takes what the numbers beside it leave. */
const NUMBERS_COLUMNS = 72
const BAR_MIN = 8
const BAR_MAX = 30

class Readings {
  readonly #rate = new RateWindow()

  constructor(
    readonly stats: RunStats,
    readonly model: number,
    readonly now: () => number,
  ) {}

  sample(): void {
    const { done, doneTokens } = this.stats
    this.#rate.add({ atMs: this.now(), items: done, tokens: doneTokens })
  }

  /** '1,180 items/s  1 m 29 s left' */
  speed(separator: string): string {
    const { items } = this.#rate.rates
    const { total, done, settled } = this.stats
    const parts = [`${short(items)} items/s`]
    if (total !== null && items > 0 && settled > 0 && done < total) {
      parts.push(`${duration((total - done) / items)} left`)
    }
    return parts.join(separator)
  }

  amount(): string {
    const { total, done } = this.stats
    return total === null ? `${count(done)} items` : `${count(done)} of ${count(total)} items`
  }

  /** What the broker is doing, and what it waits for. */
  condition(state: StateView | null, separator: string): string {
    const tokens = `${short(this.#rate.rates.tokens)} tokens/s`
    if (state === null) return `${tokens}${separator}${this.#silence()}`
    const consumers = state.consumersOf(this.model)
    const parts = [tokens, `queue ${count(state.number('items.waiting'))}`]
    if (consumers === 0) parts.push(`no consumer for model ${this.model}`)
    else {
      parts.push(gate(state))
      parts.push(consumers === 1 ? '1 consumer' : `${consumers} consumers`)
    }
    if (this.stats.failed > 0) parts.push(`${count(this.stats.failed)} failed`)
    if (this.stats.waitingFor !== null) parts.push(this.stats.waitingFor)
    return parts.join(separator)
  }

  #silence(): string {
    const { silentSinceMs } = this.stats
    const seconds = silentSinceMs === null ? 0 : (this.now() - silentSinceMs) / 1000
    return `broker unreachable, retrying for ${Math.max(0, Math.round(seconds))} s`
  }
}

const gate = (state: StateView): string =>
  state.gateOpen ? 'gate open' : `gate closed, ${percent(state.number('gate.progress'))} gathered`

class BarProgress implements Progress {
  readonly #bars: MultiBar
  readonly #bar: SingleBar
  readonly #status: SingleBar
  #state: StateView | null = null

  constructor(
    readonly readings: Readings,
    readonly stream: NodeJS.WritableStream & { columns?: number },
    hasTotal: boolean,
  ) {
    const bar = hasTotal ? '{bar} {percent}  {amount}  {speed}' : '{amount}  {speed}'
    this.#bars = new MultiBar({
      stream,
      format: bar,
      barsize: Math.max(BAR_MIN, Math.min(BAR_MAX, (stream.columns ?? 80) - NUMBERS_COLUMNS)),
      barCompleteChar: '█',
      barIncompleteChar: '░',
      hideCursor: true,
      clearOnComplete: false,
      gracefulExit: false,
      emptyOnZero: true,
      fps: 5,
    })
    this.#bar = this.#bars.create(1, 0, this.#texts())
    this.#status = this.#bars.create(1, 0, this.#texts(), { format: '{condition}' })
  }

  update(state: StateView | null): void {
    this.#state = state
    this.readings.sample()
    this.#draw()
  }

  warn(line: string): void {
    // The bars turn the terminal's own wrapping off.
    const columns = this.stream.columns ?? 80
    for (let at = 0; at < line.length; at += columns) {
      this.#bars.log(`${ERASE_LINE}${line.slice(at, at + columns)}\n`)
    }
  }

  stop(): void {
    this.#draw()
    this.#bars.stop()
  }

  #draw(): void {
    const { total, done } = this.readings.stats
    if (total !== null) this.#bar.setTotal(total)
    this.#bar.update(total === null ? 0 : Math.min(done, total), this.#texts())
    this.#status.update(0, this.#texts())
  }

  #texts() {
    const { total, done } = this.readings.stats
    return {
      percent: percent(total ? Math.min(1, done / total) : 0).padStart(7),
      amount: this.readings.amount(),
      speed: this.readings.speed('  '),
      condition: this.readings.condition(this.#state, ' · '),
    }
  }
}

class LineProgress implements Progress {
  #shownAtMs: number

  constructor(
    readonly readings: Readings,
    readonly stream: Stderr,
  ) {
    this.#shownAtMs = readings.now()
  }

  update(state: StateView | null): void {
    this.readings.sample()
    const nowMs = this.readings.now()
    if (nowMs - this.#shownAtMs < LINE_EVERY_MS) return
    this.#shownAtMs = nowMs
    const { total, done } = this.readings.stats
    const share = total === null || total === 0 ? '' : ` (${percent(Math.min(1, done / total))})`
    const { readings } = this
    this.warn(
      `fabric: ${readings.amount()}${share}, ${readings.speed(', ')}; ${readings.condition(state, ', ')}`,
    )
  }

  warn(line: string): void {
    this.stream.write(`${line}\n`)
  }

  stop(): void {}
}

class NoProgress implements Progress {
  constructor(readonly stream: Stderr) {}
  update(): void {}
  warn(line: string): void {
    this.stream.write(`${line}\n`)
  }
  stop(): void {}
}

export interface ProgressOptions {
  readonly show: boolean
  readonly stats: RunStats
  readonly model: number
  /** False for standard input: nobody knows how much will come. */
  readonly hasTotal: boolean
  readonly stream?: Stderr
  readonly now?: () => number
}

export function openProgress(options: ProgressOptions): Progress {
  const { show, stats, model, hasTotal } = options
  const { stream = process.stderr, now = () => performance.now() } = options
  if (!show) return new NoProgress(stream)
  const readings = new Readings(stats, model, now)
  return stream.isTTY
    ? new BarProgress(readings, stream as NodeJS.WritableStream, hasTotal)
    : new LineProgress(readings, stream)
}

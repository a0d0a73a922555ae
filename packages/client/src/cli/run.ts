// `fabric run`: a file of items through the broker into a file of results. Three things go on at
// once: reading and submitting, reading results, watching the broker. Each ends the others when it
// fails.
import { join } from 'node:path'
import { type ErrorBody, FabricError } from '@fabric/protocol'
import { FabricClient } from '../client.js'
import { type InputOptions, readItems } from '../input/items.js'
import { countLines, STDIN } from '../input/lines.js'
import { type InputLine, type ItemLine, isBad, type LineError } from '../input/parse.js'
import type { Job } from '../job.js'
import { type Output, openOutput } from '../output/open-output.js'
import { STDOUT, targetOf } from '../output/target.js'
import { TokenizerPool } from '../tokenizer/pool.js'
import { count } from './format.js'
import { Interrupted, type Signals } from './interrupt.js'
import { EXIT, type RunOptions } from './options.js'
import { openProgress, type Progress } from './progress.js'
import { RunStats } from './run-stats.js'
import { StateView } from './state-view.js'
import { summaryOf, summaryText } from './summary.js'

const LOOK_EVERY_MS = 1000
const LOOK_TIMEOUT_MS = 3000
const SHOW_EVERY_MS = 250
/** Further bad lines are only in the output. */
const REPORTED_LINES_MAX = 10

/** Everything that can be found wrong before a job exists, in the order of the flags. */
async function prepare(input: string, options: RunOptions, stats: RunStats) {
  const { tokenizer, workers } = options
  const files = tokenizer === undefined ? [] : [tokenizer, join(tokenizer, 'tokenizer.json')]
  const target = targetOf(options.output, [input, ...files])
  const pool = tokenizer === undefined ? null : await TokenizerPool.open({ tokenizer, workers })
  const { textField, idField } = options
  const source: InputOptions = { input, pool, textField, idField }
  try {
    const blocks = readItems(source)
    const first = await blocks.next()
    const client = new FabricClient({ broker: options.broker, apiKey: options.apiKey })
    const before = new StateView(await client.state())
    const { job: id, model, weight } = options
    const job = await client.createJob({ id, model, weight })
    const output = await openOutput({
      ...{ target, order: options.order, job, info: await job.info() },
      settle: (ended) => stats.settle(ended),
    })
    return { pool, blocks, first, client, before, job, output }
  } catch (error) {
    await pool?.close()
    throw error
  }
}

export async function runCommand(
  input: string,
  options: RunOptions,
  signals: Signals,
): Promise<number> {
  const stats = new RunStats()
  const prepared = await prepare(input, options, stats)
  const { pool, blocks, first, client, before, job } = prepared
  const run = new Run(job, client, prepared.output, stats, options, input, before)
  const startedMs = performance.now()
  try {
    await run.go(first, blocks, signals)
  } catch (error) {
    await pool?.close()
    return run.breakOff(error)
  }
  await pool?.close()
  prepared.output.finish()
  const seconds = (performance.now() - startedMs) / 1000
  const { model, output } = options
  const summary = summaryOf({
    job: job.id,
    model,
    broker: client.broker,
    output,
    stats,
    seconds,
    before,
    after: run.state,
  })
  const told = output === STDOUT ? process.stderr : process.stdout
  if (options.summary === 'json') told.write(`${JSON.stringify(summary)}\n`)
  else if (!options.quiet) told.write(summaryText(summary))
  return stats.failed > 0 ? EXIT.someFailed : EXIT.completed
}

class Run {
  readonly #progress: Progress
  readonly #abort = new AbortController()
  /** The broker as last seen; null while it does not answer. */
  state: StateView | null
  #reported = 0
  #submitted = false

  constructor(
    readonly job: Job,
    readonly client: FabricClient,
    readonly output: Output,
    readonly stats: RunStats,
    readonly options: RunOptions,
    readonly input: string,
    readonly before: StateView,
  ) {
    this.state = before
    const show = options.progress && !options.quiet
    const hasTotal = input !== STDIN
    this.#progress = openProgress({ show, stats, model: options.model, hasTotal })
  }

  async go(
    first: IteratorResult<InputLine[]>,
    blocks: AsyncGenerator<InputLine[]>,
    signals: Signals,
  ): Promise<void> {
    const { signal } = this.#abort
    signals.onInterrupt((interrupted) => this.#abort.abort(interrupted))
    if (this.input !== STDIN) this.#count(this.input)
    const stopWatching = this.#watch()
    try {
      const submitted = this.#submit(first, blocks)
      const work = [submitted, this.#collect(submitted)]
      for (const part of work) part.catch((error) => this.#abort.abort(error))
      // Both, so that nothing writes to the output any more when it is closed.
      await Promise.allSettled(work)
      signal.throwIfAborted()
    } finally {
      await stopWatching()
      this.#progress.stop()
    }
  }

  /** Says what is done and where it is kept. @returns the exit code. */
  breakOff(error: unknown): number {
    const reason = this.#abort.signal.aborted ? this.#abort.signal.reason : error
    const path = this.output.sink.keep()
    const { total, done } = this.stats
    const of = total === null ? '' : ` of ${count(total)}`
    const interrupted = reason instanceof Interrupted
    const why = interrupted ? 'interrupted' : `stopped: ${this.#cause(reason)}`
    const next = this.#isOver(reason)
      ? 'the job cannot be gone on with, and the next run with this output replaces them'
      : `to go on: the same command with --job ${this.job.id}`
    process.stderr.write(
      `fabric: ${why}\nfabric: ${count(done)}${of} items are done, kept in ${path}; ${next}\n`,
    )
    return interrupted ? reason.exitCode : EXIT.couldNotRun
  }

  get #isRestarted(): boolean {
    const [before, now] = [this.before, this.state].map((state) => state?.text('startedAt') ?? null)
    return before !== null && now !== null && now !== before
  }

  #cause(reason: FabricError): string {
    if (!this.#isRestarted) return reason.message
    return `the broker was started anew at ${this.state?.text('startedAt')}: its memory is lost, with the items and the results not yet read`
  }

  /** The job is not there any more, or not all of its results are. */
  #isOver({ code }: FabricError): boolean {
    return this.#isRestarted || code === 'FABRIC_NOT_FOUND' || code === 'FABRIC_RESULTS_GONE'
  }

  async #look(): Promise<void> {
    const signal = AbortSignal.timeout(LOOK_TIMEOUT_MS)
    this.state = await this.client.state({ signal }).then(
      (state) => new StateView(state),
      () => null,
    )
    if (this.#isRestarted)
      this.#abort.abort(new FabricError('FABRIC_NOT_FOUND', 'the broker was started anew'))
  }

  #count(input: string): void {
    countLines(input, this.#abort.signal).then(
      (lines) => {
        this.stats.total = lines
      },
      () => {},
    )
  }

  /** @returns what ends it, after a last look. */
  #watch(): () => Promise<void> {
    let looking: Promise<void> | null = null
    const look = () => {
      looking ??= this.#look().finally(() => {
        looking = null
      })
    }
    const show = () => this.#progress.update(this.state)
    show()
    const timers = [setInterval(look, LOOK_EVERY_MS), setInterval(show, SHOW_EVERY_MS)]
    return async () => {
      for (const timer of timers) clearInterval(timer)
      await looking
      await this.#look()
      show()
    }
  }

  async #submit(
    first: IteratorResult<InputLine[]>,
    blocks: AsyncGenerator<InputLine[]>,
  ): Promise<void> {
    const { stats } = this
    await this.job.submit(this.#items(first, blocks), {
      signal: this.#abort.signal,
      onRefused: ({ item, error }) => this.#refuse(item, { ...error, line: item.line }),
      onProgress: (summary) => {
        stats.submit = summary
        stats.waitingFor = null
      },
      onWait: (because) => {
        stats.waitingFor = becauseOf(because)
      },
    })
    this.#submitted = true
  }

  async *#items(
    first: IteratorResult<InputLine[]>,
    blocks: AsyncGenerator<InputLine[]>,
  ): AsyncGenerator<ItemLine> {
    for (let next = first; !next.done; next = await blocks.next()) {
      for (const line of next.value) {
        if (isBad(line)) {
          this.stats.badLines += 1
          this.#refuse(line, line.error)
        } else {
          this.output.sink.expect(line)
          yield line
        }
      }
    }
  }

  #refuse(line: { line: number; position: number; id: string }, error: LineError): void {
    this.output.sink.failed(line, error)
    this.#reported += 1
    if (this.#reported > REPORTED_LINES_MAX) return
    const field = error.field === undefined ? '' : `${error.field}: `
    this.#progress.warn(`fabric: line ${error.line}: ${field}${error.message} (${error.code})`)
    if (this.#reported === REPORTED_LINES_MAX) {
      this.#progress.warn('fabric: further lines with errors are only in the output')
    }
  }

  /** A job that is gone on with may end before all is submitted: then the results go on too. */
  async #collect(submitted: Promise<void>): Promise<void> {
    let { offset } = this.output
    for (;;) {
      const wasSubmitted = this.#submitted
      for await (const result of this.job.results({ offset, signal: this.#abort.signal })) {
        offset = result.offset + 1
        this.output.sink.result(result)
      }
      if (wasSubmitted) return
      await submitted
    }
  }
}

function becauseOf(because: ErrorBody | null): string {
  switch (because?.code) {
    case 'FABRIC_QUEUE_FULL':
      return 'the queue is full, waiting for room'
    case 'FABRIC_RESULTS_UNREAD':
      return 'waiting for results to be read'
    default:
      return because?.message ?? 'waiting'
  }
}

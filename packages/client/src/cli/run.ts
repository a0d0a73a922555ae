// `fabric run`: a file of items through the broker into a file of results. Three things go on at
// once: reading and submitting, reading results, watching the broker. Each ends the others when it
// fails.
import { join } from 'node:path'
import { type ErrorBody, FabricError } from '@fabric/protocol'
import { FabricClient } from '../client.js'
import { isTransient } from '../http/retry.js'
import { type InputOptions, readItems } from '../input/items.js'
import { countLines, STDIN } from '../input/lines.js'
import { type InputLine, type ItemLine, isBad, type LineError } from '../input/parse.js'
import type { JobSource } from '../output/job-place.js'
import { type Output, openOutput, openTarget } from '../output/open-output.js'
import { STDOUT, targetOf } from '../output/target.js'
import { TokenizerPool } from '../tokenizer/pool.js'
import { BrokerWatch } from './broker-watch.js'
import { count } from './format.js'
import { Interrupted, type Signals } from './interrupt.js'
import { clientOptions, EXIT, type RunOptions } from './options.js'
import { openProgress, type Progress } from './progress.js'
import { runArguments } from './run-arguments.js'
import { RunStats } from './run-stats.js'
import { StateView } from './state-view.js'
import { summaryOf, summaryText } from './summary.js'

const SHOW_EVERY_MS = 250
/** Further bad lines are only in the output. */
const REPORTED_LINES_MAX = 10

/** As the broker says it of lines that it is asked about. */
const ID_CONFLICT: ErrorBody = {
  code: 'FABRIC_ID_CONFLICT',
  message: 'the id was used in this job with another body',
  field: 'id',
}

/** Everything that can be found wrong before a job exists, in the order of the flags. */
async function prepare(input: string, options: RunOptions, stats: RunStats) {
  const { tokenizer, workers } = options
  const files = tokenizer === undefined ? [] : [tokenizer, join(tokenizer, 'tokenizer.json')]
  const target = targetOf(options.output, [input, ...files])
  const pool = tokenizer === undefined ? null : await TokenizerPool.open({ tokenizer, workers })
  const { textField, idField, restart = false } = options
  const source: InputOptions = { input, pool, textField, idField }
  try {
    const args = runArguments(input, options)
    const mark = await openTarget(target, args, restart)
    const blocks = readItems(source)
    const first = await blocks.next()
    const client = new FabricClient(clientOptions(options))
    const before = await firstLook(client, mark !== null)
    const output = await openOutput({
      ...{ target, order: options.order, arguments: args, mark },
      source: jobSource(client, options),
      settle: (ended) => stats.settle(ended),
      warn,
    })
    return { pool, blocks, first, client, before, output }
  } catch (error) {
    await pool?.close()
    throw error
  }
}

const warn = (line: string) => process.stderr.write(`${line}\n`)

/** An address with a mistake is not waited for; a broker that the run knows from before is. */
async function firstLook(client: FabricClient, isKnown: boolean): Promise<StateView> {
  try {
    return new StateView(await client.state())
  } catch (error) {
    if (!isKnown || !isTransient(error)) throw error
    warn(`fabric: ${error.message}: waiting for it`)
    await client.health()
    return new StateView(await client.state())
  }
}

const jobSource = (
  client: FabricClient,
  { job: name, model, weight, maxWaitMs }: RunOptions,
): JobSource => ({
  broker: client.broker,
  name: name ?? null,
  job: (id) => client.job(id),
  open: (id) => client.createJob({ id, model, weight, maxWaitMs }),
  renews: true,
})

export async function runCommand(
  input: string,
  options: RunOptions,
  signals: Signals,
): Promise<number> {
  const stats = new RunStats()
  const prepared = await prepare(input, options, stats)
  const { pool, blocks, first, client, before } = prepared
  const { job } = prepared.output
  const run = new Run(client, prepared.output, stats, options, input, before)
  const startedMs = performance.now()
  try {
    await run.go(first, blocks, signals)
    checkWhole(prepared.output)
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
    after: run.watch.state,
  })
  const told = output === STDOUT ? process.stderr : process.stdout
  if (options.summary === 'json') told.write(`${JSON.stringify(summary)}\n`)
  else if (!options.quiet) told.write(summaryText(summary))
  return stats.failed > 0 ? EXIT.someFailed : EXIT.completed
}

/**
 * A broker may have lost what it had accepted: one with relaxed sync that was killed, or with a damaged disk.
 * @throws FabricError FABRIC_RESULTS_GONE
 */
function checkWhole({ sink }: Output): void {
  const { missing } = sink
  if (missing !== null && missing > 0)
    throw new FabricError(
      'FABRIC_RESULTS_GONE',
      `the job is over, and ${count(missing)} of its items have no result: the broker has lost them`,
    )
}

class Run {
  readonly #progress: Progress
  readonly #abort = new AbortController()
  readonly watch: BrokerWatch
  #reported = 0
  #submitted = false

  constructor(
    readonly client: FabricClient,
    readonly output: Output,
    readonly stats: RunStats,
    readonly options: RunOptions,
    readonly input: string,
    readonly before: StateView,
  ) {
    this.watch = new BrokerWatch({
      ...{ client, job: output.job, createdAt: output.createdAt, before },
      onLost: (error) => this.#abort.abort(error),
    })
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
    const stopWatching = this.#show()
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
    process.stderr.write(
      `fabric: ${why}\nfabric: ${count(done)}${of} items are done, kept in ${path}; ${this.#next(reason)}\n`,
    )
    return interrupted ? reason.exitCode : EXIT.couldNotRun
  }

  #cause(reason: FabricError): string {
    const { isRestarted, state } = this.watch
    if (reason.code !== 'FABRIC_NOT_FOUND' || !isRestarted)
      return `${reason.message} (${reason.code})`
    return `the broker was started anew at ${state?.text('startedAt')}: its memory is lost, with the items and the results not yet read`
  }

  /** What to do. The job may not be there any more, or not all of its results. */
  #next({ code }: FabricError): string {
    const isOver = code === 'FABRIC_NOT_FOUND' || code === 'FABRIC_RESULTS_GONE'
    if (this.output.isResumable) {
      const rest = isOver ? ', which submits the items without a result anew' : ''
      return `to go on: the same command${rest}`
    }
    return isOver
      ? 'the job cannot be gone on with'
      : `to go on: the same command with --job ${this.output.job.id}`
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
  #show(): () => Promise<void> {
    const { watch } = this
    const show = () => {
      this.stats.silentSinceMs = watch.silentSinceMs
      this.#progress.update(watch.state)
    }
    show()
    watch.start()
    const timer = setInterval(() => {
      show()
      this.#flush()
    }, SHOW_EVERY_MS)
    return async () => {
      clearInterval(timer)
      await watch.stop()
      show()
    }
  }

  /** Whatever ends the process finds most results written; the broker may keep read ones only so long. */
  #flush(): void {
    try {
      this.output.sink.flush()
    } catch (error) {
      this.#abort.abort(error)
    }
  }

  async #submit(
    first: IteratorResult<InputLine[]>,
    blocks: AsyncGenerator<InputLine[]>,
  ): Promise<void> {
    const { stats } = this
    await this.output.job.submit(this.#items(first, blocks), {
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
    const { items, sink } = this.output
    for (let next = first; !next.done; next = await blocks.next()) {
      for (const line of next.value) {
        if (isBad(line)) {
          this.stats.badLines += 1
          this.#refuse(line, line.error)
          continue
        }
        const standing = items.standing(line)
        if (standing === 'conflict') {
          this.stats.badLines += 1
          this.#refuse(line, { ...ID_CONFLICT, line: line.line })
          continue
        }
        sink.expect(line)
        if (standing === 'new') yield line
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
      for await (const result of this.output.job.results({ offset, signal: this.#abort.signal })) {
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
    case 'FABRIC_DRAINING':
      return 'the broker is shutting down, waiting for it'
    case 'FABRIC_DISK_FULL':
    case 'FABRIC_DISK_FAILED':
      return `${because.message}, waiting for it`
    default:
      return because?.message ?? 'waiting'
  }
}

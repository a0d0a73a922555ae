// `fabric submit`: sends a file's items, ends the job's input and leaves. Results are for later.
import { FabricError } from '@fabric/protocol'
import { FabricClient } from '../client.js'
import { readItems } from '../input/items.js'
import { type InputLine, type ItemLine, isBad, type LineError } from '../input/parse.js'
import { TokenizerPool } from '../tokenizer/pool.js'
import { count } from './format.js'
import { Interrupted, type Signals } from './interrupt.js'
import {
  type BrokerOptions,
  clientOptions,
  EXIT,
  type InputFlags,
  type RetryFlags,
} from './options.js'

export async function submitCommand(
  input: string,
  options: BrokerOptions & RetryFlags & InputFlags,
  signals: Signals,
): Promise<number> {
  const { tokenizer, workers, textField, idField, model, weight, maxWaitMs } = options
  const pool = tokenizer === undefined ? null : await TokenizerPool.open({ tokenizer, workers })
  let failed = 0
  const report = (error: LineError) => {
    failed += 1
    const field = error.field === undefined ? '' : `${error.field}: `
    process.stderr.write(`fabric: line ${error.line}: ${field}${error.message} (${error.code})\n`)
  }
  try {
    const blocks = readItems({ input, pool, textField, idField })
    const first = await blocks.next()
    const client = new FabricClient(clientOptions(options))
    await client.state() // an address with a mistake is not waited for
    const job = await client.createJob({ id: options.job, model, weight, maxWaitMs })
    const abort = new AbortController()
    signals.onInterrupt((interrupted) => abort.abort(interrupted))
    let known = 0
    const submitted = job.submit(itemsOf(first, blocks, report), {
      signal: abort.signal,
      onRefused: ({ item, error }) => report({ ...error, line: item.line }),
      onProgress: ({ accepted, duplicate }) => {
        known = accepted + duplicate
      },
    })
    const summary = await submitted.catch((error) => brokenOff(error, job.id, known))
    if (typeof summary === 'number') return summary
    process.stderr.write(
      `fabric: ${count(summary.accepted)} items accepted, ${count(summary.duplicate)} known before, ` +
        `${count(failed)} failed; results: fabric results ${job.id} -o FILE\n`,
    )
    process.stdout.write(`${job.id}\n`)
    return failed > 0 ? EXIT.someFailed : EXIT.completed
  } finally {
    await pool?.close()
  }
}

/** @returns the exit code. */
function brokenOff(error: unknown, job: string, known: number): number {
  const interrupted = error instanceof Interrupted
  if (!interrupted && !(error instanceof FabricError)) throw error
  const why = interrupted ? 'interrupted' : `stopped: ${error.message} (${error.code})`
  const next =
    !interrupted && error.code === 'FABRIC_NOT_FOUND'
      ? 'the job is gone, with its items'
      : `to go on: the same command with --job ${job}; what the job has is not taken twice`
  process.stderr.write(`fabric: ${why}\nfabric: job ${job} has ${count(known)} items; ${next}\n`)
  return interrupted ? error.exitCode : EXIT.couldNotRun
}

async function* itemsOf(
  first: IteratorResult<InputLine[]>,
  blocks: AsyncGenerator<InputLine[]>,
  report: (error: LineError) => void,
): AsyncGenerator<ItemLine> {
  for (let next = first; !next.done; next = await blocks.next()) {
    for (const line of next.value) {
      if (isBad(line)) report(line.error)
      else yield line
    }
  }
}

// `fabric results`: follows a job's results into a file, in the order in which items ended.
import { FabricClient } from '../client.js'
import { CompletionSink } from '../output/sink.js'
import { targetOf } from '../output/target.js'
import { count } from './format.js'
import type { Interrupted, Signals } from './interrupt.js'
import { type BrokerOptions, EXIT } from './options.js'

export interface ResultsFlags extends BrokerOptions {
  readonly output: string
  readonly follow: boolean
}

export async function resultsCommand(
  id: string,
  { output, follow, ...broker }: ResultsFlags,
  signals: Signals,
): Promise<number> {
  const target = targetOf(output)
  const job = new FabricClient(broker).job(id)
  await job.info() // a job that does not exist must not leave an empty file
  const sink = await CompletionSink.open(target)
  const abort = new AbortController()
  let interrupted: Interrupted | null = null
  signals.onInterrupt((how) => {
    interrupted = how
    abort.abort(how)
  })
  let completed = 0
  let failed = 0
  const say = (how: string) =>
    process.stderr.write(
      `fabric: ${how}: ${count(completed)} completed, ${count(failed)} failed, in ${target.name}\n`,
    )
  try {
    for await (const result of job.results({ follow, signal: abort.signal })) {
      sink.result(result)
      if (result.status === 'completed') completed += 1
      else failed += 1
    }
  } catch (error) {
    say('broken off')
    if (interrupted === null) throw error
    return (interrupted as Interrupted).exitCode
  } finally {
    sink.finish()
  }
  say(`job ${id}`)
  return failed > 0 ? EXIT.someFailed : EXIT.completed
}

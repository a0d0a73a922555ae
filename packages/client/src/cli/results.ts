// `fabric results`: follows a job's results into a file, in the order in which items ended.
import { FabricClient } from '../client.js'
import { openOutput } from '../output/open-output.js'
import type { Ended } from '../output/resume.js'
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
  const info = await job.info() // a job that does not exist must not leave an empty file
  let completed = 0
  let failed = 0
  const settle = ({ status }: Ended) => {
    if (status === 'completed') completed += 1
    else failed += 1
  }
  const { sink, offset, finish } = await openOutput({
    ...{ target, job, info, settle },
    order: 'completion',
  })
  const abort = new AbortController()
  let interrupted: Interrupted | null = null
  signals.onInterrupt((how) => {
    interrupted = how
    abort.abort(how)
  })
  const say = (how: string) =>
    process.stderr.write(
      `fabric: ${how}: ${count(completed)} completed, ${count(failed)} failed, in ${target.name}\n`,
    )
  try {
    for await (const result of job.results({ offset, follow, signal: abort.signal })) {
      sink.result(result)
    }
  } catch (error) {
    sink.keep()
    say('broken off')
    if (interrupted === null) throw error
    return (interrupted as Interrupted).exitCode
  }
  finish()
  say(`job ${id}`)
  return failed > 0 ? EXIT.someFailed : EXIT.completed
}

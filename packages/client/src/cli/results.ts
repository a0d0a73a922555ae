// `fabric results`: follows a job's results into a file, in the order in which items ended.
import { FabricClient } from '../client.js'
import type { Ended } from '../output/kept.js'
import type { Arguments } from '../output/mark.js'
import { openOutput, openTarget } from '../output/open-output.js'
import { targetOf } from '../output/target.js'
import { count } from './format.js'
import type { Interrupted, Signals } from './interrupt.js'
import { type BrokerOptions, clientOptions, EXIT, type RetryFlags } from './options.js'

export interface ResultsFlags extends BrokerOptions, RetryFlags {
  readonly output: string
  readonly follow: boolean
  readonly restart?: boolean
}

export async function resultsCommand(
  id: string,
  { output, follow, restart = false, ...broker }: ResultsFlags,
  signals: Signals,
): Promise<number> {
  const client = new FabricClient(clientOptions(broker))
  const target = targetOf(output)
  const args: Arguments = { 'the command': 'results', 'the job': id }
  const earlier = await openTarget(target, args, restart)
  if (earlier === null) await client.state() // an address with a mistake is not waited for
  const job = client.job(id)
  const { createdAt } = await job.info() // a job that does not exist must not leave an empty file
  let completed = 0
  let failed = 0
  const settle = ({ status }: Ended) => {
    if (status === 'completed') completed += 1
    else failed += 1
  }
  const { sink, offset, finish } = await openOutput({
    ...{ target, settle, order: 'completion', arguments: args, warn: () => {} },
    source: {
      broker: client.broker,
      name: id,
      job: () => job,
      open: async () => job,
      renews: false,
    },
    // Another job of its name has results of its own.
    mark: earlier?.createdAt === createdAt ? earlier : null,
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

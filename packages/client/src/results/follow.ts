// The results of a job, once each, over as many connections as it takes. The offset of the next
// result is all the state there is: offsets have no gaps, so a repeat or a loss is seen.
import { FabricError, type JobInfo } from '@fabric/protocol'
import { Backoff, type RetryPolicy, retrying } from '../http/retry.js'
import type { Transport } from '../http/transport.js'
import { LineSplitter } from '../lines.js'
import { type JobResult, parseResult } from './value.js'

export interface ResultsOptions {
  /** First result wanted: the offset of the last one known, plus one. */
  readonly offset?: number | undefined
  /** Until the job ends (default), or only what is there. */
  readonly follow?: boolean | undefined
  readonly signal?: AbortSignal | undefined
}

const pathOf = (job: string, offset: number, follow: boolean): string => {
  const query = `encoding=base64&follow=${follow}&offset=${offset}`
  return `/v1/jobs/${encodeURIComponent(job)}/results?${query}`
}

/** @throws FabricError FABRIC_RESULTS_GONE when the result at `offset` was read and given up. */
export async function checkReadable(
  transport: Transport,
  job: string,
  offset: number,
): Promise<void> {
  for await (const _ of transport.stream(`${pathOf(job, offset, false)}&limit=0`)) return
}

/** Results of one connection. A line that was cut off at its end is left for the next. */
async function* readOnce(
  transport: Transport,
  path: string,
  signal: AbortSignal | undefined,
  onOpen: () => void,
): AsyncGenerator<JobResult[]> {
  const splitter = new LineSplitter()
  for await (const chunk of transport.stream(path, signal, onOpen)) {
    const lines = splitter.push(chunk).filter((line) => line !== null && line !== '')
    if (lines.length > 0) yield (lines as string[]).map(parseResult)
  }
}

/** The results from `next` on; offsets before it are repeats. @throws when one is missing. */
function fresh(results: readonly JobResult[], next: number): readonly JobResult[] {
  const found = results.filter((result) => result.offset >= next)
  found.forEach((result, i) => {
    if (result.offset === next + i) return
    const message = `results: ${next + i} is missing, ${result.offset} came instead`
    throw new FabricError('FABRIC_PROTOCOL', message, { field: 'offset' })
  })
  return found
}

export async function* followResults(
  transport: Transport,
  policy: RetryPolicy,
  job: string,
  { offset = 0, follow = true, signal }: ResultsOptions,
): AsyncGenerator<JobResult> {
  const backoff = new Backoff(policy)
  const path = `/v1/jobs/${encodeURIComponent(job)}`
  const info = () => transport.json<JobInfo>(path, { signal })
  let ended = false
  for (let next = offset; ; ) {
    const startedAt = next
    let openedAt = Number.POSITIVE_INFINITY
    const onOpen = () => {
      openedAt = policy.now()
    }
    let broken: unknown = null
    try {
      for await (const results of readOnce(transport, pathOf(job, next, follow), signal, onOpen)) {
        backoff.reset()
        for (const result of fresh(results, next)) {
          next = result.offset + 1
          yield result
        }
      }
    } catch (error) {
      broken = error
    }
    if (broken === null) {
      if (!follow) return
      // A broker that drains closes the stream too: the end is to find nothing in an ended job.
      const found = next > startedAt
      if (ended && !found) return
      ended ||= (await retrying(policy, info, signal)).state === 'ended'
      if (ended || found) continue
      const message = `the results of job ${job} ended before the job`
      broken = new FabricError('FABRIC_CONNECTION_LOST', message)
    }
    // Nothing may come for long; a connection that stood for a while ends a row of failures too.
    if (policy.now() - openedAt > policy.maxDelayMs) backoff.reset()
    await backoff.wait(broken, signal)
  }
}

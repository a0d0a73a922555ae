// The state of the jobs as the index has it, for the start.
import { STATUSES } from '../results/log.js'
import type { Counters, JobCounter } from './counters.js'
import type { Environment } from './environment.js'
import { META_TIMED } from './layout.js'
import type { RecoveredJob, StoredDeadline, StoredJob } from './store.js'
import { deadlinesIn } from './stored-deadlines.js'

export function recoveredJobs(
  environment: Environment,
  jobs: Iterable<StoredJob>,
  counters: Counters,
): RecoveredJob[] {
  // Only an index that ever held a deadline is looked through for them.
  const isTimed = environment.tables.meta.getBinary(META_TIMED) !== undefined
  const deadlines = isTimed ? deadlinesIn(environment) : null
  return Array.from(jobs, (job) =>
    recovered(job, counters.job(job.number), deadlines?.get(job.number) ?? []),
  )
}

function recovered(
  job: StoredJob,
  counter: JobCounter,
  deadlines: readonly StoredDeadline[],
): RecoveredJob {
  return {
    ...job,
    accepted: counter.accepted,
    settled: Object.fromEntries(
      STATUSES.map((status) => [status, counter[status]]),
    ) as RecoveredJob['settled'],
    lost: counter.lost,
    deadlines,
    shapes: Array.from(counter.shapes.values(), ({ shape, items, tokens }) => ({
      ...shape,
      items,
      tokens,
    })),
    results: {
      firstOffset: counter.firstOffset,
      endOffset: counter.endOffset,
      readOffset: counter.readOffset,
      unreadBytes: counter.unreadBytes,
    },
  }
}

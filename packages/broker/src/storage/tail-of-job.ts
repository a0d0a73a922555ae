// What of a job stands in the log alone, for `fabric-broker verify` and `dump`, which take nothing in.
import type { ResultRecord } from '../results/log.js'
import type { JobFields } from './counters.js'
import type { Environment } from './environment.js'
import { META_HASH_KEY } from './layout.js'
import { readLogPosition } from './log-position.js'
import { type TailAppend, type TailItems, type TailSettled, tailOfLog } from './log-tail.js'
import { readRecord } from './result-chunk.js'

interface TailResult {
  readonly record: ResultRecord
  readonly append: TailSettled
}

/** All of the tail. */
export function tailOf(
  { tables, dataDir }: Environment,
  onProblem: (problem: string) => void,
): TailAppend[] {
  const hashKey = tables.meta.getBinary(META_HASH_KEY)
  if (hashKey === undefined) return []
  const from = readLogPosition(tables.meta)
  return [...tailOfLog(dataDir, Buffer.from(hashKey), from, onProblem)]
}

export class TailOfJob {
  readonly items: TailItems[] = []
  readonly results: TailResult[] = []
  /** Sequences. */
  readonly settled = new Set<number>()

  constructor(
    readonly job: number,
    tail: readonly TailAppend[],
  ) {
    for (const append of tail) {
      if (append.kind === 'settled') this.#addSettled(append)
      else if (append.header.job === job) this.items.push(append)
    }
  }

  #addSettled(append: TailSettled): void {
    const { jobs, sequences, models, records, recordEnds } = append.columns
    for (let i = 0; i < jobs.length; i++) {
      if (jobs[i] !== this.job || (models[i] >= 0 && this.settled.has(sequences[i]))) continue
      if (models[i] >= 0) this.settled.add(sequences[i])
      const record = readRecord(records, i === 0 ? 0 : recordEnds[i - 1])
      this.results.push({ record, append })
    }
  }

  /** The job's counts with what is not in the index. */
  addTo(counts: JobFields): JobFields {
    const sum = { ...counts }
    for (const { blocks } of this.items) for (const { count } of blocks) sum.accepted += count
    for (const { record } of this.results) sum[record.status] += 1
    sum.accepted += this.results.length - this.settled.size
    sum.endOffset += this.results.length
    return sum
  }
}

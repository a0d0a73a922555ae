// Takes the rows of deleted jobs out of the file, a bounded number in a transaction. The tombstone in
// `jobs` goes last, so that a broker that died in between goes on.
import type { Environment, Table } from './environment.js'
import { jobKey, keyBehind, type TableName } from './layout.js'

const KEYS_PER_STEP = 256
const TABLES_OF_JOBS = [
  'items',
  'marks',
  'results',
  'ids',
  'filters',
  'counters',
] as const satisfies readonly TableName[]

export class JobRemoval {
  readonly #jobs: number[] = []

  constructor(readonly tables: Environment['tables']) {}

  get hasWork(): boolean {
    return this.#jobs.length > 0
  }

  add(job: number): void {
    this.#jobs.push(job)
  }

  clear(): void {
    this.#jobs.length = 0
  }

  /** Within the transaction. */
  step(): void {
    let room = KEYS_PER_STEP
    while (room > 0 && this.#jobs.length > 0) {
      const job = this.#jobs[0]
      for (const name of TABLES_OF_JOBS) room -= removeKeys(this.tables[name], jobKey(job), room)
      if (room === 0) return
      this.tables.jobs.remove(jobKey(job))
      this.#jobs.shift()
    }
  }
}

function removeKeys(table: Table, prefix: Buffer, most: number): number {
  const range = { start: prefix, end: keyBehind(prefix), limit: most }
  const keys = Array.from(table.getKeys(range), (key) => Buffer.from(key))
  for (const key of keys) table.remove(key)
  return keys.length
}

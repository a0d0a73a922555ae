// Takes the rows of deleted jobs out of the file, a bounded number in a transaction. The tombstone in
// `jobs` goes last, so that a broker that died in between goes on.
import { BlockRow } from './block-row.js'
import type { Environment, Table } from './environment.js'
import { jobKey, keyBehind, type TableName } from './layout.js'
import type { Segments } from './segments.js'

const KEYS_PER_STEP = 256
const TABLES_OF_JOBS = [
  'results',
  'ids',
  'filters',
  'counters',
] as const satisfies readonly TableName[]

export class JobRemoval {
  readonly #jobs: number[] = []

  constructor(
    readonly tables: Environment['tables'],
    readonly segments: Segments,
  ) {}

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
      room -= this.#removeBlocks(jobKey(job), room)
      for (const name of TABLES_OF_JOBS) room -= removeKeys(this.tables[name], jobKey(job), room)
      if (room === 0) return
      this.tables.jobs.remove(jobKey(job))
      this.#jobs.shift()
    }
  }

  #removeBlocks(prefix: Buffer, most: number): number {
    const { blocks } = this.tables
    const keys: Buffer[] = []
    for (const { key, value } of blocks.getRange(rangeOf(prefix, most))) {
      keys.push(Buffer.from(key))
      const place = BlockRow.decode(value)?.place
      if (place === undefined) this.segments.recountLater()
      else this.segments.add(place.segment, -1, -place.bytes)
    }
    for (const key of keys) blocks.remove(key)
    return keys.length
  }
}

const rangeOf = (prefix: Buffer, limit: number) => ({
  start: prefix,
  end: keyBehind(prefix),
  limit,
})

function removeKeys(table: Table, prefix: Buffer, most: number): number {
  const keys = Array.from(table.getKeys(rangeOf(prefix, most)), (key) => Buffer.from(key))
  for (const key of keys) table.remove(key)
  return keys.length
}

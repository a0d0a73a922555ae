// Bounds what the consumers of a plant have done, over all of them and all their lives: a job cannot end
// before it is allowed to, however its results come. length-sum-runtime.mjs is the other side.
import { statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Tail } from './tail.js'

/** An id, blanks, and the end of the line: so that sizes of files are counts. */
const RECORD_BYTES = 12
/** Long enough to be killed in, short beside the start of a process. */
const BATCH_MS = 20

export class Throttle {
  /** A record for each item that was done, as often as it was done. */
  readonly #done: string
  /** Holds nothing: its size is that of all records that there may be. */
  readonly #allowed: string
  readonly #tail: Tail
  /** By id. */
  readonly #times = new Map<string, number>()
  #executions = 0

  constructor(folder: string) {
    this.#done = join(folder, 'done')
    this.#allowed = join(folder, 'allowed')
    for (const path of [this.#done, this.#allowed]) writeFileSync(path, '')
    this.#tail = new Tail(this.#done)
  }

  /** For the consumers, which are told nothing else. */
  get environment(): Record<string, string> {
    const [done, allowed] = [this.#done, this.#allowed]
    const settings = { done, allowed, recordBytes: RECORD_BYTES, batchMs: BATCH_MS }
    return { FABRIC_PLANT_THROTTLE: JSON.stringify(settings) }
  }

  /** So many items in all, however often each; a consumer may exceed it by the batch that it has in hand. */
  allow(items: number): void {
    const repeats = this.executions - this.distinct
    truncateSync(this.#allowed, (items + repeats) * RECORD_BYTES)
  }

  /** How often an item may be done yet. */
  get left(): number {
    return Math.max(0, statSync(this.#allowed).size / RECORD_BYTES - this.executions)
  }

  get executions(): number {
    this.#read()
    return this.#executions
  }

  /** Items that were done at least once: there cannot be more results. */
  get distinct(): number {
    this.#read()
    return this.#times.size
  }

  timesOf(id: string): number {
    this.#read()
    return this.#times.get(id) ?? 0
  }

  #read(): void {
    for (const record of this.#tail.read()) {
      const id = record.trimEnd()
      this.#times.set(id, (this.#times.get(id) ?? 0) + 1)
      this.#executions += 1
    }
  }
}

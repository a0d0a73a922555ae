// What of the results has been read: it may be read again until all that is kept so is over
// maxKeptResultBytes; then whole chunks go, those of the job that was read first ahead.
import type { Counters, JobCounter } from './counters.js'
import type { Table } from './environment.js'
import { resultKey } from './layout.js'
import { decodeChunk, type ResultChunk } from './result-chunk.js'
import { keyAtOrBefore } from './settling.js'

const CHUNKS_PER_STEP = 64

export class ReadResults {
  /** Jobs with kept results, in the order in which they were read first. */
  readonly #jobs = new Set<number>()

  constructor(
    readonly results: Table,
    readonly maxKeptBytes: number,
  ) {}

  load(counters: Counters): void {
    for (const { job, keptBytes } of counters.jobs()) if (keptBytes > 0) this.#jobs.add(job)
  }

  clear(): void {
    this.#jobs.clear()
  }

  forget(job: number): void {
    this.#jobs.delete(job)
  }

  /** All before the offset were read. @returns bytes of the job that are still unread. */
  read(counter: JobCounter, offset: number): number {
    const target = Math.min(offset, counter.endOffset)
    while (counter.readOffset < target) {
      const chunk = this.#chunkAt(counter.job, counter.readOffset)
      const next = chunk === null ? target : Math.min(target, chunk.firstOffset + chunk.count)
      const bytes = chunk === null ? 0 : bytesBetween(chunk, counter.readOffset, next)
      counter.unreadBytes -= bytes
      counter.keptBytes += bytes
      counter.readOffset = next
    }
    if (counter.readOffset === counter.endOffset) counter.unreadBytes = 0
    if (counter.keptBytes > 0) this.#jobs.add(counter.job)
    return counter.unreadBytes
  }

  /** Within the transaction. */
  trim(counters: Counters): void {
    let kept = 0
    for (const job of this.#jobs) kept += counters.job(job).keptBytes
    let room = CHUNKS_PER_STEP
    for (const job of this.#jobs) {
      const counter = counters.job(job)
      while (kept > this.maxKeptBytes && room > 0) {
        const bytes = this.#dropFirst(counters, counter)
        if (bytes === null) break
        kept -= bytes
        room -= 1
      }
      if (kept <= this.maxKeptBytes || room === 0) return
    }
  }

  /** @returns bytes that were kept, or null when the first chunk is not wholly read. */
  #dropFirst(counters: Counters, counter: JobCounter): number | null {
    const { job, firstOffset, readOffset } = counter
    if (firstOffset >= readOffset) {
      this.#jobs.delete(job)
      return null
    }
    const chunk = this.#chunkAt(job, firstOffset)
    const end = chunk === null ? readOffset : chunk.firstOffset + chunk.count
    if (end > readOffset) return null
    if (chunk !== null) this.results.remove(resultKey(job, chunk.firstOffset))
    const changed = counters.change(job)
    const bytes = chunk === null ? changed.keptBytes : bytesBetween(chunk, firstOffset, end)
    changed.firstOffset = end
    changed.keptBytes = Math.max(0, changed.keptBytes - bytes)
    return bytes
  }

  /** The chunk that holds the offset; null when it is damaged or was set aside. */
  #chunkAt(job: number, offset: number): ResultChunk | null {
    const key = keyAtOrBefore(this.results, resultKey(job, offset), 4)
    const bytes = key === null ? undefined : this.results.getBinary(key)
    const chunk = bytes === undefined ? null : decodeChunk(bytes)
    return chunk !== null && offset < chunk.firstOffset + chunk.count ? chunk : null
  }
}

function bytesBetween({ firstOffset, starts }: ResultChunk, from: number, to: number): number {
  return starts[to - firstOffset] - starts[Math.max(0, from - firstOffset)]
}

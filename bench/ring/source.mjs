// The bytes that every contestant in Node sends, the same in every process, and the addon's copy and
// sum. Records lie one behind the other in 64 MiB and are cycled.
import { createRequire } from 'node:module'
import { join } from 'node:path'

export const SOURCE_BYTES = 64 * 1024 * 1024

/** @type {{ copy(to: object, toAt: number, from: object, fromAt: number, bytes: number): void,
 *   sum(bytes: object, byteLength: number): number, allocate(bytes: number): ArrayBuffer }} */
export const kernels = createRequire(import.meta.url)(
  join(import.meta.dirname, 'native', 'build', 'bench_addon.node'),
)

/** @type {Uint8Array | undefined} */
let bytes

export function source() {
  if (bytes !== undefined) return bytes
  const words = new Uint32Array(kernels.allocate(SOURCE_BYTES))
  let state = 2463534242
  for (let i = 0; i < words.length; i++) {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    words[i] = state
  }
  bytes = new Uint8Array(words.buffer)
  return bytes
}

/**
 * Native contestants have just written theirs when their clock starts. This one was last touched a
 * round ago, and whoever ran since then has taken the caches.
 */
export const warmSource = () => kernels.sum(source(), SOURCE_BYTES)

/** Where record `index` stands in source(). */
export const recordAt = (index, recordBytes) => (index * recordBytes) % SOURCE_BYTES

/** What the reader of `count` records must have found. */
export function expectedSum(recordBytes, count) {
  const all = source()
  let total = 0
  for (let i = 0; i < count; i++) {
    const at = recordAt(i, recordBytes)
    total = (total + kernels.sum(all.subarray(at, at + recordBytes), recordBytes)) >>> 0
  }
  return total
}

/** Adds up what arrives and knows the end. */
export class Tally {
  #sum = 0
  #left
  /** @param {number} count @param {(result: { endNs: bigint, sum: number }) => void} done */
  constructor(count, done) {
    this.#left = count
    this.done = done
  }

  /** Reads every word of a record. @param {ArrayBuffer | Uint8Array} record */
  add(record) {
    this.#sum = (this.#sum + kernels.sum(record, record.byteLength)) >>> 0
    this.#left--
    if (this.#left === 0) this.done({ endNs: process.hrtime.bigint(), sum: this.#sum })
  }
}

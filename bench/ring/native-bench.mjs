// Runs one measurement of the native program. Each is a process of its own, so nothing is left over.
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { RING_BYTES } from './sizes.mjs'

const built = (name) => join(import.meta.dirname, 'native', 'build', name)
const run = promisify(execFile)
/** A record with its header is at most this part of a ring. */
const RECORDS_MIN = 8
const HEADER_BYTES = 64

/**
 * @param {{ contestant: 'copy' | 'copyread' | 'bare' | 'ring', pages: 'huge' | 'transparent' | 'base',
 *   recordBytes: number, totalBytes: number, writers?: number, copy?: string, sum?: string,
 *   ringBytes?: number }} job
 * @returns {Promise<number>} GB/s, or NaN where this machine can't do it
 */
export async function nativeThroughput(job) {
  const { contestant, pages, recordBytes, totalBytes } = job
  const { writers = 1, copy = 'memcpy', sum = 'ahead2k', ringBytes = RING_BYTES } = job
  if (RECORDS_MIN * (recordBytes + HEADER_BYTES) > ringBytes) return Number.NaN
  const words = [contestant, pages, recordBytes, totalBytes, writers, copy, sum, ringBytes]
  const { stdout } = await run(built('ring_bench'), words.map(String), { timeout: 120_000 })
  const result = JSON.parse(stdout)
  if (result.ns === undefined) return Number.NaN
  return result.bytes / result.ns
}

/**
 * @param {readonly [number, number]} cores @param {number} count
 * @returns {Promise<{ oneWayUs: number[], roundTripUs: number[] }>}
 */
export async function nativePing(cores, count) {
  const words = [...cores, count].map(String)
  const { stdout } = await run(built('pipe_ping'), words, { maxBuffer: 2 ** 26 })
  return JSON.parse(stdout)
}

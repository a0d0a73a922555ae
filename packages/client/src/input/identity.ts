// What tells an input from another, without reading all of it: a run goes on only with the input that
// it began with.
import { createHash } from 'node:crypto'
import { closeSync, openSync, readSync, type Stats, statSync } from 'node:fs'
import type { Arguments } from '../output/mark.js'
import { STDIN, unreadable } from './lines.js'

const HEAD_BYTES = 64 << 10

/** Under any name. Of a pipe nothing is known, and nothing may be read ahead of the run. */
export function inputIdentity(input: string): Arguments {
  const stats = input === STDIN ? null : statsOf(input)
  if (!stats?.isFile()) return { 'the input': 'a stream' }
  return {
    'the input': 'a file',
    'the size of the input': stats.size,
    'the time at which the input was changed': stats.mtime.toISOString(),
    'the SHA-256 of its first 64 KiB': headDigest(input),
  }
}

function statsOf(input: string): Stats {
  try {
    return statSync(input)
  } catch (error) {
    throw unreadable(input, error)
  }
}

function headDigest(path: string): string {
  try {
    const file = openSync(path, 'r')
    try {
      const head = Buffer.alloc(HEAD_BYTES)
      let length = 0
      for (let got = -1; got !== 0 && length < HEAD_BYTES; length += got) {
        got = readSync(file, head, length, HEAD_BYTES - length, null)
      }
      return createHash('sha256').update(head.subarray(0, length)).digest('hex')
    } finally {
      closeSync(file)
    }
  } catch (error) {
    throw unreadable(path, error)
  }
}

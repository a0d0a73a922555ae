// Reads what an earlier run left: whole records, in the order in which it wrote them. Their number tells
// which result is next, so nothing beside the records has to be kept up with them.
import { createReadStream } from 'node:fs'
import { LineSplitter } from '../lines.js'
import type { JobResult } from '../results/value.js'

/** How an item ended, as counts need it. */
export type Ended = Pick<JobResult, 'status' | 'truncatedTo'>

export interface KeptResult extends Ended {
  readonly id: string
  /** Bytes of the file. */
  readonly start: number
  readonly length: number
}

export interface Kept {
  /** Of whole lines; what stands behind them was torn. */
  readonly bytes: number
  readonly results: number
  /** Input lines that have a record without ever having been an item. */
  readonly failedLines: ReadonlySet<number>
}

export const NOTHING_KEPT: Kept = { bytes: 0, results: 0, failedLines: new Set() }

interface Record extends Ended {
  readonly id: string
  readonly error?: { readonly line?: number }
}

function recordOf(line: string | null): Record | null {
  try {
    const record = JSON.parse(line ?? '')
    return typeof record?.id === 'string' && typeof record.status === 'string' ? record : null
  } catch {
    return null
  }
}

/** The records of a file up to the first line that is none. */
export async function readKept(
  path: string,
  onResult: (result: KeptResult) => void,
): Promise<Kept> {
  const failedLines = new Set<number>()
  const splitter = new LineSplitter()
  let bytes = 0
  let results = 0
  for await (const chunk of createReadStream(path)) {
    for (const line of splitter.push(chunk)) {
      const record = recordOf(line)
      if (record === null) return { bytes, results, failedLines }
      const length = Buffer.byteLength(line!) + 1
      const failedLine = record.error?.line
      if (failedLine === undefined) {
        results += 1
        onResult({ ...record, start: bytes, length })
      } else failedLines.add(failedLine)
      bytes += length
    }
  }
  return { bytes, results, failedLines }
}

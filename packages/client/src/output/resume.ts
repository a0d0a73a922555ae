// Going on with records that an earlier run left. A mark beside the output says of which life of which
// job they are. All results of the job stand in them from the first on, in the order of their offsets,
// so that their number is the offset to go on from.
import { createReadStream, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { LineSplitter } from '../lines.js'
import type { JobResult } from '../results/value.js'

export interface Mark {
  readonly job: string
  /** Tells a job from an earlier one of its name: a broker that was started anew has none. */
  readonly createdAt: string
  readonly order: 'input' | 'completion'
}

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

export const markPathOf = (output: string): string => `${output}.resume`

const textOf = ({ job, createdAt, order }: Mark) => `${JSON.stringify({ job, createdAt, order })}\n`

export function isMarked(output: string, mark: Mark): boolean {
  const path = markPathOf(output)
  return existsSync(path) && readFileSync(path, 'utf8') === textOf(mark)
}

export const setMark = (output: string, mark: Mark): void =>
  writeFileSync(markPathOf(output), textOf(mark))

export const removeMark = (output: string): void => rmSync(markPathOf(output), { force: true })

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

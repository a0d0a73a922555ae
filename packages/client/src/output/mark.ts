// The state file beside an output: what command writes it and which job its records are of, so that the
// same command goes on after whatever ended it. It is replaced in one step, and gone once the output is
// whole. How far the output is it does not say: the records themselves do.
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { FabricError } from '@fabric/protocol'
import { outputError } from './line-file.js'

/** Named as a message shows them. Two runs of the same are one. */
export type Arguments = Readonly<Record<string, string | number | null>>

export interface Mark {
  readonly arguments: Arguments
  readonly broker: string
  readonly job: string
  /**
   * Tells a job from an earlier one of its name: a broker that lost its memory has none. Null: no record
   * of the job is in the output yet.
   */
  readonly createdAt: string | null
  /** Results of jobs that are lost: they stand before those of `job`, whose offsets begin behind them. */
  readonly earlierResults: number
}

export const markPathOf = (output: string): string => `${output}.resume`
export const newMarkPathOf = (output: string): string => `${output}.resume.new`

const isMark = (value: Partial<Mark> | null): value is Mark =>
  typeof value?.arguments === 'object' &&
  typeof value.broker === 'string' &&
  typeof value.job === 'string' &&
  typeof value.earlierResults === 'number'

/** @throws FabricError FABRIC_OTHER_RUN when what stands there is no mark of ours. */
export function readMark(output: string): Mark | null {
  const path = markPathOf(output)
  if (!existsSync(path)) return null
  try {
    const mark = JSON.parse(readFileSync(path, 'utf8'))
    if (isMark(mark)) return mark
  } catch {}
  const message = `${path} does not say which run began ${output}: --restart begins anew over its records`
  throw new FabricError('FABRIC_OTHER_RUN', message, { field: 'output' })
}

/** On the disk when it returns: a mark must not come after the records that it explains. */
export function writeMark(output: string, mark: Mark): void {
  try {
    writeFileSync(newMarkPathOf(output), `${JSON.stringify(mark)}\n`, { flush: true })
    renameSync(newMarkPathOf(output), markPathOf(output))
    syncFolder(dirname(output))
  } catch (error) {
    throw outputError(output, error)
  }
}

function syncFolder(path: string): void {
  const folder = openSync(path, 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}

export function removeMark(output: string): void {
  for (const path of [markPathOf(output), newMarkPathOf(output)]) rmSync(path, { force: true })
}

const shown = (value: string | number | null | undefined) => value ?? 'not given'

/** @throws FabricError FABRIC_OTHER_RUN naming what differs. */
export function checkSame(output: string, mark: Mark, now: Arguments): void {
  const before = mark.arguments
  const command = 'the command'
  if (before[command] !== now[command]) {
    throw otherRun(output, [
      `${command} was fabric ${before[command]} and is fabric ${now[command]}`,
    ])
  }
  const names = [...new Set([...Object.keys(before), ...Object.keys(now)])]
  const differences = names
    .filter((name) => (before[name] ?? null) !== (now[name] ?? null))
    .map((name) => `${name} was ${shown(before[name])} and is ${shown(now[name])}`)
  if (differences.length > 0) throw otherRun(output, differences)
}

export const otherRun = (output: string, differences: readonly string[]): FabricError =>
  new FabricError(
    'FABRIC_OTHER_RUN',
    `${output} holds the beginning of another run: ${differences.join(', ')}; give the same to go on with it, or --restart to begin anew`,
    { field: 'output' },
  )

// What stands at the place of an output. A file is written as a file, wherever symlinks lead; a pipe
// or device is written to as it is and never replaced; what is read is never written.
import {
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readlinkSync,
  realpathSync,
  type Stats,
  statSync,
} from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { FabricError } from '@fabric/protocol'
import { STDIN } from '../input/lines.js'
import { outputError } from './line-file.js'
import { markPathOf, newMarkPathOf } from './mark.js'
import { partialOf, sortedOf } from './ordered-file.js'

/** Standard output under the name that the field's tools give it. */
export const STDOUT = '-'
const STDOUT_FILE = 1
const STDIN_FILE = 0
/** Between two looks for the reader of a pipe. */
const READER_MS = 50

export interface Target {
  /** As messages name it. */
  readonly name: string
  /** The file to write, symlinks followed; null for standard output, a pipe or a device. */
  readonly file: string | null
}

const refused = (why: string) => new FabricError('FABRIC_OUTPUT', why, { field: 'output' })

const found = (path: string): Stats | undefined => statSync(path, { throwIfNoEntry: false })

/** @throws FabricError FABRIC_OUTPUT when it cannot be written without harm to one of `inputs`. */
export function targetOf(output: string, inputs: readonly string[] = []): Target {
  try {
    return output === STDOUT ? standardOutput(inputs) : pathTarget(output, inputs)
  } catch (error) {
    throw error instanceof FabricError ? error : outputError(output, error)
  }
}

function standardOutput(inputs: readonly string[]): Target {
  const name = 'standard output'
  keepApart(name, fstatSync(STDOUT_FILE), inputs)
  return { name, file: null }
}

function pathTarget(output: string, inputs: readonly string[]): Target {
  const folder = dirname(resolve(output))
  if (!found(folder)?.isDirectory()) throw refused(`output ${output}: there is no folder ${folder}`)
  const stats = found(output)
  keepApart(`output ${output}`, stats, inputs)
  if (stats?.isDirectory()) throw refused(`output ${output} is a folder`)
  if (stats?.isFIFO() || stats?.isCharacterDevice()) return { name: output, file: null }
  if (stats !== undefined && !stats.isFile()) {
    throw refused(`output ${output} is neither a file nor a pipe nor a character device`)
  }
  const file = stats === undefined ? missingFile(output) : realpathSync(output)
  for (const beside of [partialOf(file), sortedOf(file), markPathOf(file), newMarkPathOf(file)]) {
    const other = found(beside)
    keepApart(`${beside}, which the output needs,`, other, inputs)
    if (other !== undefined && !other.isFile()) {
      throw refused(`output ${output} needs ${beside}, which is no file`)
    }
  }
  return { name: output, file }
}

/** The file that a symlink to nothing stands for, or the path itself. */
function missingFile(path: string): string {
  const here = join(realpathSync(dirname(resolve(path))), basename(resolve(path)))
  const isLink = lstatSync(here, { throwIfNoEntry: false })?.isSymbolicLink()
  return isLink ? missingFile(resolve(dirname(here), readlinkSync(here))) : here
}

/** By device and inode: a file may have many names. A terminal is rightly read and written. */
function keepApart(what: string, stats: Stats | undefined, inputs: readonly string[]): void {
  if (stats === undefined || !(stats.isFile() || stats.isFIFO())) return
  for (const input of inputs) {
    const read = input === STDIN ? fstatSync(STDIN_FILE) : found(input)
    if (read?.dev !== stats.dev || read.ino !== stats.ino) continue
    throw refused(`${what} is the same file as the input ${input}`)
  }
}

/** Opens standard output, a pipe or a device; a pipe waits for its reader and may be interrupted. */
export async function openStream({ name }: Target): Promise<number> {
  if (name === 'standard output') return STDOUT_FILE
  for (;;) {
    try {
      return openSync(name, constants.O_WRONLY | constants.O_NONBLOCK)
    } catch (error) {
      const hasNoReader = (error as NodeJS.ErrnoException).code === 'ENXIO'
      if (!hasNoReader || !found(name)?.isFIFO()) throw outputError(name, error)
    }
    await delay(READER_MS)
  }
}

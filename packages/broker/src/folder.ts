// A folder that is made with those above it.
import { lstatSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'

/** Step by step: Node's recursive mkdir never returns below a folder like /proc that makes none. */
export function makeFolder(folder: string, mode: number): void {
  if (lstatSync(folder, { throwIfNoEntry: false }) !== undefined) return
  makeFolder(dirname(folder), mode)
  try {
    mkdirSync(folder, { mode })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

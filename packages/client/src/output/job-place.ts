// Which job a command goes on with, and from which result on: its own, a new one, or, where the broker
// has lost it, another for the items that have no record yet.
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { FabricError, type JobInfo } from '@fabric/protocol'
import type { Job } from '../job.js'
import type { Kept } from './kept.js'
import { type Arguments, type Mark, otherRun, removeMark, writeMark } from './mark.js'
import { partialOf } from './ordered-file.js'

/** Where the command's job comes from. */
export interface JobSource {
  readonly broker: string
  /** That the user gave the job; null: the command makes one up. */
  readonly name: string | null
  /** A job of that id, whether there is one or not. */
  job(id: string): Job
  /** Makes the job where there is none, if the command may. */
  open(id: string): Promise<Job>
  /** Whether items of a job that is lost can be submitted to another. */
  readonly renews: boolean
}

export interface PlaceOptions {
  readonly source: JobSource
  readonly arguments: Arguments
  readonly mark: Mark | null
  readonly warn: (line: string) => void
}

export interface Place {
  readonly job: Job
  readonly createdAt: string
  /** Kept results that are not of this job. */
  readonly earlierResults: number
}

/** @throws FabricError FABRIC_RESULTS_GONE, FABRIC_OTHER_RUN, and what the source throws. */
export async function placeOf(file: string, kept: Kept, options: PlaceOptions): Promise<Place> {
  const { mark, source, warn } = options
  const createdAt = mark?.createdAt ?? null
  if (mark === null || createdAt === null) return firstPlace(file, options)
  const job = source.job(mark.job)
  const info = await infoOf(job)
  const isSame = info?.createdAt === createdAt
  if (!isSame && mark.broker !== source.broker) {
    const brokers = `--broker was ${mark.broker} and is ${source.broker}, where the job is not`
    throw otherRun(file, [brokers])
  }
  const { earlierResults } = mark
  const offset = kept.results - earlierResults
  if (isSame && offset >= 0) {
    const left = await checkReadable(job, offset, [partialOf(file), file]).catch((error) => {
      if (!source.renews || error.code !== 'FABRIC_RESULTS_GONE') throw error
      return 'gone'
    })
    if (left !== 'gone') return { job, createdAt, earlierResults }
  }
  warn(
    `fabric: ${source.broker} has no results of job ${mark.job} behind those that are kept: items without one are submitted anew`,
  )
  return anotherPlace(info === null ? mark.job : randomUUID(), kept, source)
}

/** The mark comes first: killed in between, the next run finds the job and makes no second one. */
async function firstPlace(file: string, options: PlaceOptions): Promise<Place> {
  const { source, mark } = options
  const id = mark?.job ?? source.name ?? randomUUID()
  const { broker } = source
  const earlierResults = 0
  writeMark(file, {
    ...{ arguments: options.arguments, broker, job: id },
    ...{ createdAt: null, earlierResults },
  })
  try {
    const job = await source.open(id)
    await checkReadable(job, 0, [partialOf(file), file])
    return { job, createdAt: (await job.info()).createdAt, earlierResults }
  } catch (error) {
    removeMark(file)
    throw error
  }
}

/** A job that nobody has submitted to: its results are then those of items without a record. */
async function anotherPlace(id: string, kept: Kept, source: JobSource): Promise<Place> {
  const job = await source.open(id)
  const { accepted, createdAt } = await job.info()
  if (accepted > 0) return anotherPlace(randomUUID(), kept, source)
  return { job, createdAt, earlierResults: kept.results }
}

async function infoOf(job: Job): Promise<JobInfo | null> {
  try {
    return await job.info()
  } catch (error) {
    if (error instanceof FabricError && error.code === 'FABRIC_NOT_FOUND') return null
    throw error
  }
}

/** @throws FabricError FABRIC_RESULTS_GONE naming the file that may be all that is left of them. */
export async function checkReadable(
  job: Job,
  offset: number,
  paths: readonly string[],
): Promise<void> {
  try {
    await job.checkReadable(offset)
  } catch (error) {
    if (!(error instanceof FabricError) || error.code !== 'FABRIC_RESULTS_GONE') throw error
    const holder = paths.find((path) => existsSync(path))
    const left =
      holder === undefined
        ? 'begin anew without --job'
        : `what was written of them is in ${holder}, which is left as it is: keep it, and begin anew without --job and with another output`
    const message = `job ${job.id}: ${error.message}, and only an earlier run has them; ${left}`
    throw new FabricError(error.code, message, { field: error.field, cause: error })
  }
}

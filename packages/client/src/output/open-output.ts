// Opens what a run writes to: anew, or behind what an earlier run of the same job left. Nothing that
// exists is touched before the broker has said that it still has the results that would be missing.
import { existsSync } from 'node:fs'
import { FabricError, type JobInfo } from '@fabric/protocol'
import type { Job } from '../job.js'
import { LineFile, outputError } from './line-file.js'
import { LooseRecords } from './loose-records.js'
import { OrderedFile, partialOf } from './ordered-file.js'
import {
  isMarked,
  type Kept,
  type Mark,
  NOTHING_KEPT,
  readKept,
  removeMark,
  setMark,
} from './resume.js'
import { CompletionSink, OrderedSink, type Settle, type Sink } from './sink.js'
import { openStream, type Target } from './target.js'

export interface Output {
  readonly sink: Sink
  /** The first result that is not in the output. */
  readonly offset: number
  /** The output is whole. */
  finish(): void
}

export interface OutputOptions {
  readonly target: Target
  readonly order: Mark['order']
  readonly job: Job
  readonly info: JobInfo
  readonly settle: Settle
}

export async function openOutput(options: OutputOptions): Promise<Output> {
  const { target, job } = options
  if (target.file !== null) return openFile(target.file, options)
  await checkReadable(job, 0, [])
  const sink = sinkInto(new LineFile(target.name, { file: await openStream(target) }), options)
  return { sink, offset: 0, finish: () => sink.finish() }
}

function sinkInto(stream: LineFile, { order, settle }: OutputOptions): Sink {
  return order === 'input'
    ? new OrderedSink(OrderedFile.into(stream), new LooseRecords(), settle)
    : new CompletionSink(stream, NOTHING_KEPT.failedLines, settle)
}

async function openFile(file: string, options: OutputOptions): Promise<Output> {
  const { order, job, info, settle } = options
  const mark = { job: job.id, createdAt: info.createdAt, order }
  const written = order === 'input' ? partialOf(file) : file
  const loose = new LooseRecords()
  const onKept = order === 'input' ? loose.add.bind(loose) : settle
  const isKept = existsSync(written) && isMarked(file, mark)
  const kept = isKept ? await readKept(written, onKept) : NOTHING_KEPT
  await checkReadable(job, kept.results, [partialOf(file), file])
  if (kept.bytes === 0) removeMark(file)
  const sink = sinkOf(file, kept, { order, loose, settle })
  try {
    setMark(file, mark)
  } catch (error) {
    throw outputError(file, error)
  }
  const finish = () => {
    sink.finish()
    removeMark(file)
  }
  return { sink, offset: kept.results, finish }
}

function sinkOf(
  file: string,
  { bytes: keptBytes, failedLines }: Kept,
  { order, loose, settle }: Pick<OutputOptions, 'order' | 'settle'> & { loose: LooseRecords },
): Sink {
  return order === 'input'
    ? new OrderedSink(new OrderedFile(file, { keptBytes }), loose, settle)
    : new CompletionSink(new LineFile(file, { keptBytes }), failedLines, settle)
}

/** @throws FabricError FABRIC_RESULTS_GONE naming the file that may be all that is left of them. */
async function checkReadable(job: Job, offset: number, paths: readonly string[]): Promise<void> {
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

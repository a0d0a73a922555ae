// Opens what a command writes to: anew, or behind what an earlier one of the same arguments left. Nothing
// that exists is touched before the broker has said that it still has the results that would be missing.
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import type { Job } from '../job.js'
import { checkReadable, type JobSource, placeOf } from './job-place.js'
import { type Kept, NOTHING_KEPT, readKept } from './kept.js'
import { KeptItems } from './kept-items.js'
import { LineFile } from './line-file.js'
import { lockOutput } from './lock.js'
import { LooseRecords } from './loose-records.js'
import { type Arguments, checkSame, type Mark, readMark, removeMark, writeMark } from './mark.js'
import { OrderedFile, partialOf } from './ordered-file.js'
import { CompletionSink, OrderedSink, type Settle, type Sink } from './sink.js'
import { openStream, type Target } from './target.js'

export interface Output {
  readonly job: Job
  /** Of the job: another job of its id is another's. */
  readonly createdAt: string
  /** Whether the same command finds what this one leaves. */
  readonly isResumable: boolean
  readonly sink: Sink
  /** The first result that is not in the output. */
  readonly offset: number
  /** Those of which a record stands in the output already. */
  readonly items: KeptItems
  /** The output is whole. */
  finish(): void
}

export interface OutputOptions {
  readonly target: Target
  readonly order: 'input' | 'completion'
  readonly source: JobSource
  readonly arguments: Arguments
  /** What an earlier command of the same arguments left; null: nothing, or it is begun anew. */
  readonly mark: Mark | null
  readonly settle: Settle
  readonly warn: (line: string) => void
}

/**
 * Takes the output for this command, to the end of its process.
 * @returns what an earlier command left to go on with.
 * @throws FabricError FABRIC_OUTPUT_IN_USE; FABRIC_OTHER_RUN when it had other arguments.
 */
export async function openTarget(
  { file }: Target,
  args: Arguments,
  restart: boolean,
): Promise<Mark | null> {
  if (file === null) return null
  await lockOutput(file)
  const mark = restart ? null : readMark(file)
  if (mark !== null) checkSame(file, mark, args)
  return mark
}

export async function openOutput(options: OutputOptions): Promise<Output> {
  const { target, source, order, settle } = options
  if (target.file !== null) return openFile(target.file, options)
  const job = await source.open(source.name ?? randomUUID())
  await checkReadable(job, 0, [])
  const stream = new LineFile(target.name, { file: await openStream(target) })
  const sink =
    order === 'input'
      ? new OrderedSink(OrderedFile.into(stream), new LooseRecords(), settle)
      : new CompletionSink(stream, NOTHING_KEPT.failedLines, settle, false)
  const { createdAt } = await job.info()
  return {
    ...{ job, createdAt, sink, offset: 0, isResumable: false, items: new KeptItems() },
    finish: () => sink.finish(() => {}),
  }
}

async function openFile(file: string, options: OutputOptions): Promise<Output> {
  const { order, settle, mark, source } = options
  const written = order === 'input' ? partialOf(file) : file
  const [loose, items] = [new LooseRecords(), new KeptItems()]
  const hasRecords = mark !== null && mark.createdAt !== null && existsSync(written)
  const kept = hasRecords
    ? await readKept(written, (result) => {
        items.add(result.id)
        if (order === 'input') loose.add(result)
        else settle(result)
      })
    : NOTHING_KEPT
  const { job, ...place } = await placeOf(file, kept, options)
  const sink = sinkOf(file, kept, { order, loose, settle })
  const { broker } = source
  writeMark(file, { arguments: options.arguments, broker, job: job.id, ...place })
  return {
    ...{ job, createdAt: place.createdAt, sink, items, isResumable: true },
    offset: kept.results - place.earlierResults,
    finish: () => sink.finish(() => removeMark(file)),
  }
}

function sinkOf(
  file: string,
  { bytes: keptBytes, failedLines }: Kept,
  { order, loose, settle }: Pick<OutputOptions, 'order' | 'settle'> & { loose: LooseRecords },
): Sink {
  return order === 'input'
    ? new OrderedSink(new OrderedFile(file, { keptBytes }), loose, settle)
    : new CompletionSink(new LineFile(file, { keptBytes }), failedLines, settle, true)
}

// `fabric-broker dump`: what a data folder holds, as lines of JSON, for operators and for rescue. What
// cannot be read is named on standard error and left out.
import { once } from 'node:events'
import { FabricError } from '@fabric/protocol'
import type { ResultRecord } from '../results/log.js'
import { renderLine } from '../results/render.js'
import { BlockRow } from '../storage/block-row.js'
import { decodeRow, JOB_FIELDS, type JobFields } from '../storage/counters.js'
import { type Environment, openEnvironment } from '../storage/environment.js'
import { decodeBlock, type ItemBlock, payloadOf } from '../storage/item-block.js'
import { decodeJob } from '../storage/job-row.js'
import { jobKey, keyBehind, placeOf } from '../storage/layout.js'
import { isBehind, readLogPosition } from '../storage/log-position.js'
import { decodeChunk, readRecord } from '../storage/result-chunk.js'
import { TailOfJob, tailOf } from '../storage/tail-of-job.js'

export interface DumpFlags {
  readonly dataDir: string
  readonly job?: string
  readonly items?: boolean
  readonly results?: boolean
}

type Tables = Environment['tables']
interface DumpedJob {
  readonly number: number
  readonly id: string
}

export async function dump(flags: DumpFlags): Promise<void> {
  if (flags.items === true && flags.results === true)
    throw new FabricError('FABRIC_USAGE', '--items and --results exclude each other')
  const environment = openEnvironment(flags.dataDir, { readOnly: true })
  const { tables, root } = environment
  const jobs = jobsOf(tables).filter(({ id }) => flags.job === undefined || id === flags.job)
  if (flags.job !== undefined && jobs.length === 0)
    throw new FabricError('FABRIC_NOT_FOUND', `no job ${flags.job} in ${flags.dataDir}`)
  for (const job of jobs) {
    if (flags.items === true) await write(itemLines(environment, job))
    else if (flags.results === true) await write(resultLines(environment, job))
    else await write([jobLine(environment, job)])
  }
  await root.close()
}

async function write(lines: Iterable<string>): Promise<void> {
  for (const line of lines) if (!process.stdout.write(line)) await once(process.stdout, 'drain')
}

const warn = (text: string) => process.stderr.write(`fabric-broker: left out: ${text}\n`)

/** Jobs whose row cannot be read go by their number. */
function jobsOf(tables: Tables): DumpedJob[] {
  const jobs: DumpedJob[] = []
  for (const { key, value } of tables.jobs.getRange({})) {
    const job = decodeJob(value)
    const number = key.readUInt32BE(0)
    if (job === 'damaged') jobs.push({ number, id: `#${number}` })
    else if (job !== null) jobs.push(job)
  }
  return jobs
}

/** What the index has, and what only the log has: the next start takes it in. */
const tailFor = (environment: Environment, { number }: DumpedJob) =>
  new TailOfJob(number, tailOf(environment, warn))

function jobLine(environment: Environment, job: DumpedJob): string {
  const row = environment.tables.counters.getBinary(jobKey(job.number))
  const numbers = row === undefined ? null : decodeRow(row, JOB_FIELDS.length)
  const kept =
    numbers === null
      ? null
      : (Object.fromEntries(JOB_FIELDS.map((field, index) => [field, numbers[index]])) as JobFields)
  const counts = kept === null ? null : tailFor(environment, job).addTo(kept)
  return `${JSON.stringify({ ...job, counts })}\n`
}

function* itemLines(environment: Environment, job: DumpedJob): Iterable<string> {
  const { tables, log } = environment
  // Before the index is read: what a broker takes in meanwhile is met there, or nowhere.
  const tail = tailFor(environment, job)
  const start = jobKey(job.number)
  for (const { key, value } of tables.blocks.getRange({ start, end: keyBehind(start) })) {
    const { model, firstSequence } = placeOf(key)
    const row = BlockRow.decode(value)
    const bytes = row === null ? null : log.read(row.place)
    const block = bytes === null ? null : decodeBlock(bytes)
    if (row === null || block === null)
      warn(`a block of job ${job.id} from sequence ${firstSequence}`)
    else
      yield* blockLines(job.id, model, block, (i, of) => row.isSettled(i) || tail.settled.has(of))
  }
  const known = readLogPosition(tables.meta)
  for (const append of tail.items) {
    if (isBehind(known, append)) continue
    const { header, blocks } = append
    for (const [index, block] of blocks.entries()) {
      const { model } = header.blocks[index].shape
      yield* blockLines(job.id, model, block, (_, sequence) => tail.settled.has(sequence))
    }
  }
}

function* blockLines(
  job: string,
  model: number,
  block: ItemBlock,
  isSettled: (item: number, sequence: number) => boolean,
): Iterable<string> {
  let token = 0
  for (let i = 0; i < block.count; i++) {
    const payload = payloadOf(block, i)
    const from = token
    if (payload === null) token += block.lengths[i]
    const sequence = block.firstSequence + block.sequenceDeltas[i]
    if (isSettled(i, sequence)) continue
    yield `${JSON.stringify({
      job,
      sequence,
      id: Buffer.from(
        block.ids.subarray(i === 0 ? 0 : block.idEnds[i - 1], block.idEnds[i]),
      ).toString(),
      model,
      ...(payload === null
        ? { tokens: Array.from(block.tokens.subarray(from, token)) }
        : { payload: Buffer.from(payload).toString('base64'), length: block.lengths[i] }),
      acceptedAtMs: block.acceptedAtMs,
      ...(block.deadlineMs === null || block.deadlineMs[i] === 0
        ? {}
        : { deadlineMs: block.deadlineMs[i] }),
    })}\n`
  }
}

function* resultLines(environment: Environment, { number, id }: DumpedJob): Iterable<string> {
  const { tables } = environment
  const start = jobKey(number)
  let next = 0
  const lineOf = (offset: number, record: ResultRecord) =>
    `{"job":${JSON.stringify(id)},${renderLine(offset, record, 'base64').slice(1)}`
  const { results } = tailFor(environment, { number, id })
  for (const { value } of tables.results.getRange({ start, end: keyBehind(start) })) {
    const bytes = Buffer.from(new Uint8Array(value).buffer)
    const chunk = decodeChunk(bytes)
    if (chunk === null) {
      warn(`a chunk of results of job ${id}`)
      continue
    }
    for (let i = 0; i < chunk.count; i++)
      yield lineOf(chunk.firstOffset + i, readRecord(chunk.bytes, chunk.starts[i]))
    next = chunk.firstOffset + chunk.count
  }
  const known = readLogPosition(tables.meta)
  for (const { record, append } of results)
    if (!isBehind(known, append)) yield lineOf(next++, record)
}

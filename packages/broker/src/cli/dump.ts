// `fabric-broker dump`: what a data folder holds, as lines of JSON, for operators and for rescue. What
// cannot be read is named on standard error and left out.
import { once } from 'node:events'
import { FabricError } from '@fabric/protocol'
import { renderLine } from '../results/render.js'
import { BlockRow } from '../storage/block-row.js'
import { decodeRow, JOB_FIELDS } from '../storage/counters.js'
import { type Environment, openEnvironment } from '../storage/environment.js'
import { decodeBlock, type ItemBlock, payloadOf } from '../storage/item-block.js'
import { decodeJob } from '../storage/job-row.js'
import { jobKey, keyBehind, META_HASH_KEY, placeOf } from '../storage/layout.js'
import { readLogPosition } from '../storage/log-position.js'
import { type TailAppend, tailOfLog } from '../storage/log-tail.js'
import { decodeChunk, readRecord } from '../storage/result-chunk.js'

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
    else if (flags.results === true) await write(resultLines(tables, job))
    else await write([jobLine(tables, job)])
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

function jobLine(tables: Tables, job: DumpedJob): string {
  const row = tables.counters.getBinary(jobKey(job.number))
  const numbers = row === undefined ? null : decodeRow(row, JOB_FIELDS.length)
  const counts =
    numbers === null
      ? null
      : Object.fromEntries(JOB_FIELDS.map((field, index) => [field, numbers[index]]))
  return `${JSON.stringify({ ...job, counts })}\n`
}

function* itemLines(environment: Environment, { number, id }: DumpedJob): Iterable<string> {
  const { tables, log } = environment
  // Before the index is read: what a broker takes in meanwhile is met there, or nowhere.
  const tail = tailOf(environment, number)
  const start = jobKey(number)
  for (const { key, value } of tables.blocks.getRange({ start, end: keyBehind(start) })) {
    const { model, firstSequence } = placeOf(key)
    const row = BlockRow.decode(value)
    const bytes = row === null ? null : log.read(row.place)
    const block = bytes === null ? null : decodeBlock(bytes)
    if (row === null || block === null) warn(`a block of job ${id} from sequence ${firstSequence}`)
    else yield* blockLines(id, model, block, (item) => row.isSettled(item))
  }
  const known = readLogPosition(tables.meta)
  for (const { segment, offset, header, blocks } of tail) {
    if (segment < known.segment || (segment === known.segment && offset < known.offset)) continue
    for (const [index, block] of blocks.entries())
      yield* blockLines(id, header.blocks[index].shape.model, block, () => false)
  }
}

/** Accepted items that the next start takes into the index. */
function tailOf({ tables, dataDir }: Environment, job: number): TailAppend[] {
  const hashKey = tables.meta.getBinary(META_HASH_KEY)
  if (hashKey === undefined) return []
  const from = readLogPosition(tables.meta)
  return [...tailOfLog(dataDir, Buffer.from(hashKey), from, warn)].filter(
    ({ header }) => header.job === job,
  )
}

function* blockLines(
  job: string,
  model: number,
  block: ItemBlock,
  isSettled: (item: number) => boolean,
): Iterable<string> {
  let token = 0
  for (let i = 0; i < block.count; i++) {
    const payload = payloadOf(block, i)
    const from = token
    if (payload === null) token += block.lengths[i]
    if (isSettled(i)) continue
    yield `${JSON.stringify({
      job,
      sequence: block.firstSequence + block.sequenceDeltas[i],
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

function* resultLines(tables: Tables, { number, id: job }: DumpedJob): Iterable<string> {
  const start = jobKey(number)
  for (const { value } of tables.results.getRange({ start, end: keyBehind(start) })) {
    const bytes = Buffer.from(new Uint8Array(value).buffer)
    const chunk = decodeChunk(bytes)
    if (chunk === null) {
      warn(`a chunk of results of job ${job}`)
      continue
    }
    for (let i = 0; i < chunk.count; i++) {
      const record = readRecord(chunk.bytes, chunk.starts[i])
      const line = renderLine(chunk.firstOffset + i, record, 'base64')
      yield `{"job":${JSON.stringify(job)},${line.slice(1)}`
    }
  }
}

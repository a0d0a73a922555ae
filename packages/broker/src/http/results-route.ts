// GET /v1/jobs/{id}/results: the job's results from an offset on, as NDJSON, as fast as the reader
// takes them. With follow the answer ends when the job has ended.
//
// What counts as read (S34) may be dropped, so it must have arrived: all before the offset of a later
// request, all of an answer that went out to its end, and of an answer under way what cannot stand in
// a socket's buffer any more. A reader that breaks off finds the rest at its offset.
import type { ServerResponse } from 'node:http'
import { FabricError } from '@fabric/protocol'
import type { FastifyInstance } from 'fastify'
import type { Job, JobTable } from '../jobs.js'
import type { ResultRecord } from '../results/log.js'
import { renderLine, type ValueEncoding } from '../results/render.js'
import { readQuery } from './query.js'

export interface ResultReaders {
  readonly jobs: JobTable
  /** Tells the core that a reader has taken results. */
  resultsRead(job: Job, bytes: number): void
  readonly maxUnreadResultBytes: number
  /** Aborted when the broker closes, which also wakes every job: no reader waits any longer. */
  readonly closing: AbortSignal
}

/** Written at once; the reader's socket decides when the next part follows. */
const CHUNK_BYTES = 32 * 1024
/**
 * What the two kernels may hold between us and the reader: Linux lets a connection's buffers grow to
 * 4 MiB here and 6 MiB there. A byte of the log is at least one of the answer.
 */
const IN_FLIGHT_BYTES_MAX = 16 * 1024 * 1024

interface ReadRequest {
  readonly job: Job
  readonly offset: number
  readonly limit: number
  readonly follow: boolean
  readonly encoding: ValueEncoding
}

export function resultsRoute(app: FastifyInstance, readers: ResultReaders): void {
  type ById = { Params: { id: string } }
  app.get<ById>('/v1/jobs/:id/results', { exposeHeadRoute: false }, async (request, reply) => {
    const query = readQuery(request.query, {
      offset: 'count',
      limit: 'count',
      follow: 'flag',
      encoding: ['float', 'base64'],
    })
    const job = readers.jobs.get(request.params.id)
    const { offset = 0, limit = Number.POSITIVE_INFINITY, follow = false } = query
    checkOffset(job, offset)
    reply.hijack()
    reply.raw.writeHead(200, { 'content-type': 'application/x-ndjson' })
    const wanted = { job, offset, limit, follow, encoding: query.encoding ?? 'float' }
    await stream(reply.raw, wanted, readers)
  })
}

function checkOffset(job: Job, offset: number): void {
  const { firstOffset, count } = job.results
  if (offset < firstOffset)
    throw new FabricError('FABRIC_RESULTS_GONE', `results before ${firstOffset} are gone`, {
      field: 'offset',
    })
  if (offset > count)
    throw new FabricError('FABRIC_BAD_REQUEST', `offset: the job has ${count} results so far`, {
      field: 'offset',
    })
}

async function stream(
  response: ServerResponse,
  { job, offset, limit, follow, encoding }: ReadRequest,
  readers: ResultReaders,
): Promise<void> {
  response.on('close', () => job.wake())
  response.flushHeaders()
  // A job goes on when half of the bound is unread at most (S34). What is taken for in flight is less by
  // a margin for how bytes are counted, or a job with one reader for its whole life would stand still.
  const inFlightBytes = Math.min(IN_FLIGHT_BYTES_MAX, readers.maxUnreadResultBytes / 4)
  const reader = job.results.open(offset)
  // What has arrived is known by whole parts.
  const partBytes = Math.min(CHUNK_BYTES, inFlightBytes / 4)
  const markArrived = async (inFlight: number) => {
    if (!job.deleted) readers.resultsRead(job, await reader.arrived(inFlight))
  }
  await markArrived(0)
  const end = offset + limit
  while (!response.destroyed) {
    // Read before looking: what comes in between is not waited for.
    const { changes } = job
    const ended = job.state === 'ended'
    // Deleted, or dropped because a faster reader of the job was here: no end that looks like one.
    if (job.deleted || reader.isDropped) return void response.destroy()
    const first = reader.offset
    const records = await reader.take(end, partBytes)
    if (records.length > 0) {
      const flowing = response.write(render(records, first, encoding))
      if (!flowing) await drained(response)
      if (!response.destroyed) await markArrived(inFlightBytes)
      continue
    }
    if (reader.offset >= end || !follow || ended || readers.closing.aborted) break
    await job.changed(changes)
  }
  if (response.destroyed) return
  response.end()
  if (await wentOut(response)) await markArrived(0)
}

/** Whether the answer left whole, with the reader still there. */
const wentOut = (response: ServerResponse) =>
  new Promise<boolean>((resolve) => {
    response.once('finish', () => resolve(true)).once('close', () => resolve(false))
  })

/** Resolves when the reader has taken what was written, or is gone. */
const drained = (response: ServerResponse) =>
  new Promise<void>((resolve) => {
    const done = () => {
      response.off('drain', done).off('close', done)
      resolve()
    }
    response.on('drain', done).on('close', done)
  })

function render(records: readonly ResultRecord[], first: number, encoding: ValueEncoding): string {
  let text = ''
  for (let i = 0; i < records.length; i++) text += renderLine(first + i, records[i], encoding)
  return text
}

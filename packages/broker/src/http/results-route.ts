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
import type { LogCursor } from '../results/log.js'
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
const CHUNK_CHARS = 64 * 1024
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
  const { results } = job
  // Of a small bound half must count, or a job with one reader for its whole life would stand still.
  const inFlightBytes = Math.min(IN_FLIGHT_BYTES_MAX, readers.maxUnreadResultBytes / 2)
  const markRead = (bytePosition: number) => {
    if (!job.deleted) readers.resultsRead(job, results.markRead(bytePosition))
  }
  const cursor = results.seek(offset)
  const startByte = cursor.bytePosition
  markRead(startByte)
  const end = offset + limit
  while (!response.destroyed) {
    // Deleted, or dropped because a faster reader of the job was here: no end that looks like one.
    if (job.deleted || results.isDropped(cursor)) return void response.destroy()
    const text = renderChunk(job, cursor, end, encoding)
    if (text !== '') {
      const flowing = response.write(text)
      results.handOut(startByte, cursor)
      if (!flowing) await drained(response)
      if (!response.destroyed) markRead(cursor.bytePosition - inFlightBytes)
      continue
    }
    if (cursor.offset >= end || !follow || job.state === 'ended' || readers.closing.aborted) break
    await job.changed()
  }
  if (response.destroyed) return
  response.end()
  if (await wentOut(response)) markRead(cursor.bytePosition)
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

function renderChunk(job: Job, cursor: LogCursor, end: number, encoding: ValueEncoding): string {
  let text = ''
  while (cursor.offset < end && text.length < CHUNK_CHARS) {
    const offset = cursor.offset
    const record = job.results.next(cursor)
    if (record === null) break
    text += renderLine(offset, record, encoding)
  }
  return text
}

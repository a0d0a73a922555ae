// POST /v1/items: one answer per item, in order. 200 when anything was accepted or known; else the
// status of the first refusal, with the same body beside the error.
import { FabricError, type ItemAnswer, type ItemsResponse } from '@fabric/protocol'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { DEFAULT_JOB } from '../jobs.js'
import { itemsOfBody } from './body.js'
import { setRetryAfter } from './errors.js'
import { Ingest, type IngestTarget, NOT_DURABLE } from './ingest.js'
import { readQuery } from './query.js'

const NDJSON = /^application\/(x-)?ndjson\b|^application\/jsonl\b/

export interface ItemsLimits {
  readonly maxBodyBytes: number
  readonly maxItemsPerRequest: number
}

/** Bodies of this scope arrive as bytes; they are parsed by hand. */
export function itemsRoute(app: FastifyInstance, target: IngestTarget, limits: ItemsLimits): void {
  const { maxBodyBytes, maxItemsPerRequest } = limits
  app.removeAllContentTypeParsers()
  const asBytes = { parseAs: 'buffer' as const, bodyLimit: maxBodyBytes }
  for (const type of [/^application\/json\b/, NDJSON])
    app.addContentTypeParser(type, asBytes, (_request, body, done) => done(null, body))

  const options = { bodyLimit: maxBodyBytes, config: { bodyLimitName: 'maxBodyBytes' } }
  app.post('/v1/items', options, async (request, reply) => {
    const query = readQuery(request.query, { job: 'text', durable: 'flag' })
    const { job = DEFAULT_JOB, durable = target.canBeDurable } = query
    if (durable && !target.canBeDurable)
      throw new FabricError('FABRIC_BAD_REQUEST', NOT_DURABLE, { field: 'durable' })
    const body = (request.body ?? Buffer.alloc(0)) as Buffer
    const ndjson = NDJSON.test(request.headers['content-type'] ?? '')
    const ingest = new Ingest(target, target.job(job), durable)
    const items = itemsOfBody(body, ndjson, maxItemsPerRequest)
    while (ingest.takeBlock(items)) {
      await nextTurn()
      await target.room()
      // Nobody would read the answer. What was taken stays: sent again, it is a duplicate.
      if (request.raw.socket.destroyed) return reply.hijack()
    }
    await ingest.settled()
    return answer(reply, ingest.response())
  })
}

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve))

const isRefused = (item: ItemAnswer) => item.status === 'refused'

function answer(reply: FastifyReply, response: ItemsResponse): FastifyReply {
  if (response.items.length === 0)
    throw new FabricError('FABRIC_ITEM_MALFORMED', 'there is no item in the body', {
      field: 'items',
    })
  if (response.retryAfterMs !== undefined)
    reply.header('retry-after', Math.ceil(response.retryAfterMs / 1000))
  if (response.accepted + response.duplicate > 0) return reply.code(200).send(response)
  const first = response.items.find(isRefused)
  if (first === undefined || first.status !== 'refused') throw new Error('bug: nothing was refused')
  const { status, code } = FabricError.fromBody(first.error)
  if (!reply.hasHeader('retry-after')) setRetryAfter(reply, code)
  return reply.code(status).send({ error: first.error, ...response })
}

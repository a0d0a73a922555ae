// The routes of items that are here already, of the quarantine and of consumers: look, cancel, replay,
// delete, drain.
import { FabricError } from '@fabric/protocol'
import type { FastifyInstance } from 'fastify'
import type { Commands } from '../commands.js'
import { DEFAULT_JOB } from '../jobs.js'
import { readObject, readQuery } from './query.js'

export interface ItemCommands {
  readonly commands: Commands
  /** @throws FabricError FABRIC_NOT_FOUND */
  drainConsumer(name: string): void
}

/** A list of this many ids is one pass over the table, and fits the small bodies. */
const IDS_MAX = 10_000

export function itemRoutes(app: FastifyInstance, { commands, drainConsumer }: ItemCommands): void {
  type ById = { Params: { id: string } }
  type ByName = { Params: { name: string } }
  const jobOf = (query: unknown) => {
    const { job = DEFAULT_JOB } = readQuery(query, { job: 'text' })
    return commands.jobs.get(job)
  }

  app.get<ById>('/v1/items/:id', async (request) => {
    const item = await commands.item(jobOf(request.query), request.params.id)
    if (item === null) throw noItem(request.params.id)
    return item
  })

  app.delete<ById>('/v1/items/:id', async (request) => {
    const cancelled = await commands.cancel(jobOf(request.query), [request.params.id])
    if (cancelled.length === 0) throw noItem(request.params.id)
    return { cancelled }
  })

  app.post('/v1/items/cancel', async (request) => {
    const { job = DEFAULT_JOB, ids } = readObject(request.body, ['job', 'ids'])
    if (typeof job !== 'string')
      throw new FabricError('FABRIC_BAD_REQUEST', 'job: a job is named by a string', {
        field: 'job',
      })
    return { cancelled: await commands.cancel(commands.jobs.get(job), idList(ids)) }
  })

  app.get('/v1/quarantine', async () => ({ items: commands.quarantined() }))
  app.post('/v1/quarantine', async (request) => {
    const { job, ids } = selection(request.body, commands)
    return { replayed: commands.replay(job, ids) }
  })
  app.delete('/v1/quarantine', async (request) => {
    const { job, ids } = selection(request.body, commands)
    return { deleted: commands.discard(job, ids) }
  })

  app.post<ByName>('/v1/consumers/:name/drain', async (request, reply) => {
    readObject(request.body, [])
    drainConsumer(request.params.name)
    return reply.code(202).send({ draining: request.params.name })
  })
}

const noItem = (id: string) =>
  new FabricError(
    'FABRIC_NOT_FOUND',
    `the job has no item ${JSON.stringify(id)} that has not ended`,
    {
      field: 'id',
    },
  )

function idList(ids: unknown): string[] {
  const valid = Array.isArray(ids) && ids.every((id) => typeof id === 'string')
  if (!valid || ids.length === 0 || ids.length > IDS_MAX)
    throw new FabricError('FABRIC_BAD_REQUEST', `ids: expected 1 to ${IDS_MAX} strings`, {
      field: 'ids',
    })
  return ids
}

/** `ids` of a `job`, or all of either where it is left out; but not all of everything by accident. */
function selection(body: unknown, commands: Commands) {
  const { job, ids, all = false } = readObject(body, ['job', 'ids', 'all'])
  if (job !== undefined && typeof job !== 'string')
    throw new FabricError('FABRIC_BAD_REQUEST', 'job: a job is named by a string', { field: 'job' })
  if (job === undefined && ids === undefined && all !== true)
    throw new FabricError('FABRIC_BAD_REQUEST', 'ids: name ids, a job, or say all: true', {
      field: 'ids',
    })
  return {
    job: job === undefined ? null : commands.jobs.get(job),
    ids: ids === undefined ? null : idList(ids),
  }
}

// The routes of jobs: create, list, look at, end their input, pause, cancel, delete.
import { FabricError, INT32_MAX, type JobInfo } from '@fabric/protocol'
import type { FastifyInstance } from 'fastify'
import type { Job, JobTable } from '../jobs.js'
import { readObject } from './query.js'

export interface JobActions {
  readonly jobs: JobTable
  /** @throws FabricError FABRIC_DRAINING, FABRIC_ID_CONFLICT, FABRIC_JOB_LIMIT */
  createJob(
    id: string | undefined,
    model: number | null,
    weight: number,
    maxWaitMs: number | null,
  ): Promise<Job>
  flushJob(job: Job): Promise<void>
  deleteJob(job: Job): Promise<void>
  /** Ends all items that have not ended; the job and its results stay. */
  cancelJob(job: Job): Promise<void>
  setPaused(job: Job, paused: boolean): Promise<void>
  jobInfo(job: Job): JobInfo
  jobInfos(): readonly JobInfo[]
}

export function jobsRoutes(app: FastifyInstance, actions: JobActions): void {
  const { jobs } = actions
  type ById = { Params: { id: string } }

  app.post('/v1/jobs', async (request, reply) => {
    const { id, model = null, weight, maxWaitMs } = readObject(request.body, JOB_FIELDS)
    if (id !== undefined && typeof id !== 'string')
      throw new FabricError('FABRIC_BAD_REQUEST', 'a job id is a string', { field: 'id' })
    if (model !== null && !(Number.isInteger(model) && inRange(model as number)))
      throw new FabricError('FABRIC_MODEL_UNKNOWN', 'a model is an integer from 0 to 2147483647', {
        field: 'model',
      })
    if (weight !== undefined && !isWeight(weight))
      throw new FabricError(
        'FABRIC_BAD_REQUEST',
        `a weight is an integer from 1 to ${WEIGHT_MAX}`,
        {
          field: 'weight',
        },
      )
    if (maxWaitMs !== undefined && !isWait(maxWaitMs))
      throw new FabricError(
        'FABRIC_BAD_REQUEST',
        `a wait is an integer of milliseconds from 0 to ${INT32_MAX}`,
        { field: 'maxWaitMs' },
      )
    // The same job again is the same answer: a producer that lost the first one may ask anew.
    const known = id === undefined ? undefined : jobs.find(id)
    const isSame = (job: Job) =>
      job.model === model &&
      (weight === undefined || job.weight === weight) &&
      (maxWaitMs === undefined || job.maxWaitMs === maxWaitMs)
    if (known !== undefined && isSame(known)) return reply.code(200).send(actions.jobInfo(known))
    const job = await actions.createJob(id, model as number | null, weight ?? 1, maxWaitMs ?? null)
    return reply.code(201).send(actions.jobInfo(job))
  })

  app.get('/v1/jobs', async () => ({ jobs: actions.jobInfos() }))

  app.get<ById>('/v1/jobs/:id', async (request) => actions.jobInfo(jobs.get(request.params.id)))

  app.post<ById>('/v1/jobs/:id/flush', async (request) => {
    readObject(request.body, [])
    const job = jobs.get(request.params.id)
    await actions.flushJob(job)
    return actions.jobInfo(job)
  })

  app.delete<ById>('/v1/jobs/:id', async (request, reply) => {
    const job = jobs.get(request.params.id)
    const active = job.state === 'open' || job.state === 'flushed'
    const done = active ? actions.cancelJob(job) : actions.deleteJob(job)
    if (!(await isDoneSoon(done))) return reply.code(202).send(actions.jobInfo(job))
    return active ? actions.jobInfo(job) : reply.code(204).send()
  })

  for (const paused of [true, false]) {
    app.post<ById>(`/v1/jobs/:id/${paused ? 'pause' : 'resume'}`, async (request) => {
      readObject(request.body, [])
      const job = jobs.get(request.params.id)
      await actions.setPaused(job, paused)
      return actions.jobInfo(job)
    })
  }
}

/** Of a huge job: whoever asked is answered, and it goes on. */
const ANSWER_WITHIN_MS = 1_000

async function isDoneSoon(work: Promise<void>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, ANSWER_WITHIN_MS, false)
  })
  // What fails after the answer is logged where it is done.
  work.catch(() => {})
  try {
    return await Promise.race([work.then(() => true), late])
  } finally {
    clearTimeout(timer)
  }
}

const JOB_FIELDS = ['id', 'model', 'weight', 'maxWaitMs']

const isWait = (value: unknown): value is number =>
  Number.isInteger(value) && inRange(value as number)

/** A turn of the heaviest job is so many of the lightest (S20a): more would be a queue of its own. */
const WEIGHT_MAX = 1000

const isWeight = (value: unknown): value is number =>
  Number.isInteger(value) && (value as number) >= 1 && (value as number) <= WEIGHT_MAX

const inRange = (model: number) => model >= 0 && model <= INT32_MAX

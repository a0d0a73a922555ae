// The routes that look and change nothing: state, metrics, probes, and a page that points to them.
import type { FastifyInstance } from 'fastify'
import type { Registry } from 'prom-client'
import type { BrokerState } from '../state.js'

export interface Readiness {
  readonly ready: boolean
  /** In words: no consumer, a model without one, draining. */
  readonly reasons: readonly string[]
}

export interface Observed {
  state(): BrokerState
  readiness(): Readiness
  /** Degraded: the disk refuses writes. The process is alive and serves what it has. */
  health(): 'healthy' | 'degraded'
  info(): Readonly<Record<string, unknown>>
  readonly registry: Registry
}

const ROUTES = [
  ['POST /v1/items', 'submit items (NDJSON or JSON); ?job= names their job'],
  [
    'POST /v1/jobs',
    'create a job: id, model, weight (1 to 1000, its share beside other jobs), maxWaitMs (0 = any)',
  ],
  ['GET /v1/jobs', 'list jobs'],
  ['GET /v1/jobs/{id}', 'one job'],
  ['POST /v1/jobs/{id}/flush', 'end of input'],
  ['GET /v1/jobs/{id}/results', 'results (NDJSON); ?offset= ?limit= ?follow=true ?encoding=base64'],
  ['POST /v1/jobs/{id}/pause, resume', 'hold its waiting items back, let them go'],
  ['DELETE /v1/jobs/{id}', 'cancel a job; forget one that has ended'],
  ['GET /v1/items/{id}', 'why an item waits; ?job='],
  ['DELETE /v1/items/{id}', 'cancel an item; ?job='],
  ['POST /v1/items/cancel', 'cancel items: { job, ids }'],
  ['GET /v1/quarantine', 'items that killed their consumers; POST replays, DELETE forgets'],
  ['POST /v1/consumers/{name}/drain', 'let a consumer finish and leave'],
  ['GET /v1/state', 'all counts as JSON'],
  ['GET /metrics', 'Prometheus metrics'],
  ['GET /livez, /readyz, /healthz, /info', 'probes'],
]

export function observeRoutes(app: FastifyInstance, observed: Observed): void {
  const { registry } = observed
  app.get('/v1/state', async () => observed.state())
  app.get('/metrics', async (_request, reply) => {
    reply.header('content-type', registry.contentType)
    return registry.metrics()
  })
  app.get('/livez', async () => ({ status: 'alive' }))
  for (const path of ['/healthz', '/health'])
    app.get(path, async () => ({ status: observed.health(), ...observed.readiness() }))
  app.get('/readyz', async (_request, reply) => {
    const readiness = observed.readiness()
    return reply.code(readiness.ready ? 200 : 503).send(readiness)
  })
  app.get('/info', async () => observed.info())
  app.get('/', async (_request, reply) => {
    const width = Math.max(...ROUTES.map(([route]) => route.length))
    const lines = ROUTES.map(([route, what]) => `${route.padEnd(width)}  ${what}`)
    return reply
      .header('content-type', 'text/plain; charset=utf-8')
      .send(`fabric-broker\n\n${lines.join('\n')}\n`)
  })
}

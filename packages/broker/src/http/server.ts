// The HTTP interface: listens, and puts the routes together. All behaviour lies in the routes.
import type { AddressInfo } from 'node:net'
import { FabricError } from '@fabric/protocol'
import Fastify, { type FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { EARLY_ERROR_HANDLERS, installErrorHandlers } from './errors.js'
import type { IngestTarget } from './ingest.js'
import { type ItemCommands, itemRoutes } from './item-routes.js'
import { type ItemsLimits, itemsRoute } from './items-route.js'
import { type JobActions, jobsRoutes } from './jobs-routes.js'
import { type Observed, observeRoutes } from './observe-routes.js'
import { type ResultReaders, resultsRoute } from './results-route.js'

export interface HttpFace {
  readonly ingest: IngestTarget
  readonly jobs: JobActions
  readonly items: ItemCommands
  readonly results: ResultReaders
  readonly observed: Observed
  readonly limits: ItemsLimits
  readonly log: Logger
}

/** Bodies other than items are a few fields. */
const SMALL_BODY_BYTES_MAX = 64 * 1024
/** Each may hold a body in the making. */
const CONNECTIONS_MAX = 4096
/** To receive a whole request: a slow sender must not hold a connection for ever. */
const REQUEST_TIMEOUT_MS = 300_000
const CLOSE_GRACE_MS = 2_000

export interface HttpAddress {
  readonly host: string
  readonly port: number
}

export function parseAddress(address: string): HttpAddress {
  const colon = address.lastIndexOf(':')
  const port = Number(address.slice(colon + 1))
  if (port > 65_535)
    throw new FabricError('FABRIC_CONFIG_INVALID', `http: ${port} is no port`, { field: 'http' })
  return { host: address.slice(0, colon).replace(/^\[|\]$/g, ''), port }
}

export const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)

export class HttpServer {
  private constructor(
    readonly app: FastifyInstance,
    readonly url: string,
  ) {}

  /** @throws FabricError FABRIC_PORT_IN_USE, FABRIC_CONFIG_INVALID */
  static async open({ host, port }: HttpAddress, face: HttpFace): Promise<HttpServer> {
    const app = Fastify({
      logger: false,
      ...EARLY_ERROR_HANDLERS,
      bodyLimit: SMALL_BODY_BYTES_MAX,
      forceCloseConnections: 'idle',
      requestTimeout: REQUEST_TIMEOUT_MS,
      routerOptions: { maxParamLength: 512 },
    })
    app.server.maxConnections = CONNECTIONS_MAX
    installErrorHandlers(app, face.log)
    acceptEmptyJson(app)
    jobsRoutes(app, face.jobs)
    itemRoutes(app, face.items)
    resultsRoute(app, face.results)
    observeRoutes(app, face.observed)
    app.register(async (scope) => itemsRoute(scope, face.ingest, face.limits))
    try {
      await app.listen({ host, port })
    } catch (cause) {
      throw listenError(cause as NodeJS.ErrnoException, host, port)
    }
    const bound = (app.server.address() as AddressInfo).port
    return new HttpServer(app, `http://${host.includes(':') ? `[${host}]` : host}:${bound}`)
  }

  /** Lets answers under way go out, for a while; idle connections are cut. */
  async close(): Promise<void> {
    const { server } = this.app
    const closed = this.app.close()
    const idle = setInterval(() => server.closeIdleConnections(), 20)
    const all = setTimeout(() => server.closeAllConnections(), CLOSE_GRACE_MS)
    await closed
    clearInterval(idle)
    clearTimeout(all)
  }
}

/** Many clients name the type though they send no body. */
function acceptEmptyJson(app: FastifyInstance): void {
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, body, done) => {
    try {
      done(null, body === '' ? undefined : JSON.parse(body as string))
    } catch (error) {
      done(new FabricError('FABRIC_BAD_REQUEST', `not JSON: ${(error as Error).message}`))
    }
  })
}

function listenError(cause: NodeJS.ErrnoException, host: string, port: number): FabricError {
  if (cause.code === 'EADDRINUSE')
    return new FabricError('FABRIC_PORT_IN_USE', `${host}:${port} is in use`, {
      field: 'http',
      cause,
    })
  return new FabricError('FABRIC_CONFIG_INVALID', `http: ${cause.message}`, {
    field: 'http',
    cause,
  })
}

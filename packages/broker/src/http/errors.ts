// Every error leaves the HTTP interface as { "error": { code, message, field? } } with the status
// of its code; fastify's own errors are translated here.
import { maxHeaderSize, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { type ErrorCode, FabricError } from '@fabric/protocol'
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The option that sets the route's body limit; absent where the limit is fixed. */
    bodyLimitName?: string
  }
}

/** Codes that mean "later": their answers carry Retry-After. */
const RETRY_AFTER_SECONDS: Readonly<Partial<Record<ErrorCode, number>>> = {
  FABRIC_DRAINING: 5,
  FABRIC_DISK_FULL: 10,
  FABRIC_DISK_FAILED: 10,
  FABRIC_QUEUE_FULL: 1,
  FABRIC_RESULTS_UNREAD: 1,
}

export function setRetryAfter(reply: FastifyReply, code: ErrorCode): void {
  const seconds = RETRY_AFTER_SECONDS[code]
  if (seconds !== undefined) reply.header('retry-after', seconds)
}

export function sendError(reply: FastifyReply, error: FabricError): FastifyReply {
  setRetryAfter(reply, error.code)
  return reply.code(error.status).send({ error: error.toBody() })
}

/** Errors from before there is a route: for the options of fastify. */
export const EARLY_ERROR_HANDLERS = {
  frameworkErrors: (error: FastifyError, _request: unknown, reply: unknown): void => {
    sendError(reply as FastifyReply, new FabricError('FABRIC_BAD_REQUEST', error.message))
  },
  clientErrorHandler: (error: NodeJS.ErrnoException, socket: Socket): void => {
    if (error.code === 'ECONNRESET' || socket.destroyed) return
    if (socket.writable) socket.write(rawAnswer(unreadable(error)))
    socket.destroy(error)
  },
}

/** What Node's parser could not make a request of. */
function unreadable({ code, message }: NodeJS.ErrnoException): FabricError {
  if (code === 'HPE_HEADER_OVERFLOW')
    return new FabricError('FABRIC_TOO_LARGE', `the headers are over ${maxHeaderSize} bytes`)
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new FabricError('FABRIC_BAD_REQUEST', 'the request did not arrive in time')
  return new FabricError('FABRIC_BAD_REQUEST', `not HTTP: ${message}`)
}

function rawAnswer(error: FabricError): string {
  const body = JSON.stringify({ error: error.toBody() })
  return [
    `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
    '',
    body,
  ].join('\r\n')
}

/** The methods of each path, learned as routes are added: to be installed before them. */
function methodsByPath(app: FastifyInstance): (path: string) => string[] {
  const methods = new Map<string, Set<string>>()
  app.addHook('onRoute', ({ url, method }) => {
    const known = methods.get(url) ?? new Set()
    methods.set(url, known)
    for (const each of [method].flat()) known.add(each)
  })
  const matches = (route: string, path: string) =>
    new RegExp(`^${route.replace(/:\w+/g, '[^/]+')}$`).test(path)
  return (path) =>
    Array.from(methods).flatMap(([route, known]) => (matches(route, path) ? [...known] : []))
}

export function installErrorHandlers(app: FastifyInstance, log: Logger): void {
  const methodsOf = methodsByPath(app)
  app.setNotFoundHandler(({ method, url }, reply) => {
    const allowed = methodsOf(url.replace(/\?.*/s, ''))
    if (allowed.length === 0)
      return sendError(reply, new FabricError('FABRIC_NOT_FOUND', `no route ${method} ${url}`))
    reply.header('allow', allowed.join(', '))
    const words = `${url} takes ${allowed.join(', ')}, not ${method}`
    return sendError(reply, new FabricError('FABRIC_METHOD', words))
  })
  app.setErrorHandler((error: FastifyError | FabricError, request, reply) => {
    const known = translate(error, request)
    if (known !== null) return sendError(reply, known)
    log.error({ err: error, method: request.method, url: request.url }, 'request failed')
    return sendError(
      reply,
      new FabricError('FABRIC_INTERNAL', 'the broker failed; its log says why'),
    )
  })
}

function translate(
  error: FastifyError | FabricError,
  { routeOptions: { bodyLimit, config } }: FastifyRequest,
): FabricError | null {
  if (error instanceof FabricError) return error
  const { statusCode = 500, message, code } = error
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE' || statusCode === 413)
    return new FabricError(
      'FABRIC_TOO_LARGE',
      `the body is over ${bodyLimit} bytes (${config?.bodyLimitName ?? 'a fixed limit of this route'})`,
    )
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE')
    return new FabricError(
      'FABRIC_BAD_REQUEST',
      'the content type must be application/json or application/x-ndjson',
      { field: 'content-type' },
    )
  return statusCode < 500 ? new FabricError('FABRIC_BAD_REQUEST', message) : null
}

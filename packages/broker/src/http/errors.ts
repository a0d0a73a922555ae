// Every error leaves the HTTP interface as { "error": { code, message, field? } } with the status
// of its code; fastify's own errors are translated here.
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

export function installErrorHandlers(app: FastifyInstance, log: Logger): void {
  app.setNotFoundHandler((request, reply) =>
    sendError(
      reply,
      new FabricError('FABRIC_NOT_FOUND', `no route ${request.method} ${request.url}`),
    ),
  )
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

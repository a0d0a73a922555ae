// HTTP to one broker over Node's own fetch, which keeps connections alive and streams bodies. Every
// failure leaves as a FabricError; refusals keep their status, so that callers can wait and resend.
import { type ErrorBody, FabricError } from '@fabric/protocol'
import { Answered } from './answered.js'

export interface TransportOptions {
  readonly broker: string
  readonly apiKey?: string | undefined
}

export interface RequestOptions {
  readonly method?: 'GET' | 'POST' | 'DELETE'
  readonly body?: string
  readonly contentType?: string
  readonly signal?: AbortSignal | undefined
}

/** An answer with its body read; an error status is not thrown. */
export interface Reply {
  /** Whose it is, for messages. */
  readonly address: string
  readonly status: number
  readonly body: unknown
  /** From the body or Retry-After; null when neither says. */
  readonly retryAfterMs: number | null
}

/** The connection was never made, so nothing was received. */
const NOT_CONNECTED = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ETIMEDOUT',
  'UND_ERR_CONNECT_TIMEOUT',
])

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null

export class Transport {
  readonly address: string
  readonly #headers: Record<string, string>

  constructor({ broker, apiKey }: TransportOptions) {
    const url = URL.canParse(broker) ? new URL(broker) : null
    if (broker.startsWith('unix:')) {
      throw new FabricError(
        'FABRIC_USAGE',
        `fabric needs the broker's HTTP address, such as http://127.0.0.1:7410, and got the socket ${broker} of consumers: give --broker, or set FABRIC_BROKER to the HTTP address`,
        { field: 'broker' },
      )
    }
    if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
      throw new FabricError(
        'FABRIC_USAGE',
        `the broker's address must be a URL such as http://127.0.0.1:7410, got ${JSON.stringify(broker)}`,
        { field: 'broker' },
      )
    }
    this.address = broker.replace(/\/+$/, '')
    this.#headers = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }
  }

  /** @throws FabricError when no answer came, or the answer is an error. */
  async json<T>(path: string, options: RequestOptions = {}): Promise<T> {
    const reply = await this.send(path, options)
    if (reply.status >= 400 || !isObject(reply.body)) throw errorOf(reply)
    return reply.body as T
  }

  /** @throws FabricError only when no answer came. */
  async send(path: string, options: RequestOptions = {}): Promise<Reply> {
    return this.#read(await this.#fetch(path, options), options.signal)
  }

  /** Chunks of a long body as they come. @throws FabricError also when it breaks off. */
  async *stream(
    path: string,
    signal?: AbortSignal,
    onOpen: () => void = () => {},
  ): AsyncGenerator<Uint8Array> {
    const response = await this.#fetch(path, { signal })
    if (response.status >= 400) {
      throw errorOf(await this.#read(response, signal))
    }
    onOpen()
    if (response.body === null) return
    const chunks = response.body[Symbol.asyncIterator]()
    try {
      for (;;) {
        const next = await chunks.next().catch((error) => {
          throw this.#lost(error, signal)
        })
        if (next.done) return
        yield next.value
      }
    } finally {
      await chunks.return?.().catch(() => {})
    }
  }

  async #read(response: Response, signal: AbortSignal | undefined): Promise<Reply> {
    try {
      const body = parsed(await response.text())
      const { address } = this
      return { address, status: response.status, body, retryAfterMs: retryAfterMs(response, body) }
    } catch (error) {
      throw this.#lost(error, signal)
    }
  }

  async #fetch(path: string, options: RequestOptions): Promise<Response> {
    const { method = 'GET', body, contentType, signal } = options
    try {
      return await fetch(`${this.address}${path}`, {
        method,
        headers: { ...this.#headers, ...(contentType && { 'content-type': contentType }) },
        ...(body === undefined ? {} : { body }),
        ...(signal === undefined ? {} : { signal }),
      })
    } catch (error) {
      throw this.#lost(error, signal)
    }
  }

  /** What fetch threw, as ours; an abort passes as it is. */
  #lost(error: unknown, signal: AbortSignal | undefined): unknown {
    if (signal?.aborted) return signal.reason
    const cause = isObject(error) && isObject(error.cause) ? error.cause : error
    const why = cause instanceof Error ? cause.message : String(cause)
    const code = isObject(cause) ? String(cause.code ?? '') : ''
    // Ports of other protocols (9, 25, 6000 and more) fetch does not even try.
    const connected = !NOT_CONNECTED.has(code) && why !== 'bad port'
    return connected
      ? new FabricError(
          'FABRIC_CONNECTION_LOST',
          `the connection to ${this.address} was lost: ${why}`,
          { cause: error },
        )
      : new FabricError(
          'FABRIC_BROKER_UNREACHABLE',
          `no broker answers at ${this.address} (${code || why})`,
          { field: 'broker', cause: error },
        )
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

function retryAfterMs(response: Response, body: unknown): number | null {
  if (isObject(body) && typeof body.retryAfterMs === 'number') return body.retryAfterMs
  const header = response.headers.get('retry-after')
  if (header === null || header.trim() === '') return null
  const seconds = Number(header)
  if (Number.isFinite(seconds)) return Math.max(0, seconds * 1000)
  const date = Date.parse(header)
  return Number.isNaN(date) ? null : Math.max(0, date - Date.now())
}

/** What a foreign server says, in one line; its pages say nothing to a reader of messages. */
function saidIn(body: unknown): string {
  if (typeof body !== 'string') return ''
  const text = body.trim()
  return text === '' || text.startsWith('<') ? '' : `: ${text.split('\n')[0].slice(0, 200)}`
}

export const notABroker = (address: string, what: string): FabricError =>
  new FabricError('FABRIC_PROTOCOL', `what answers at ${address} is not a broker (${what})`, {
    field: 'broker',
  })

/** The error that a reply holds. A 5xx that is not the broker's own (a proxy's) counts as no answer. */
export function errorOf({ address, status, body, retryAfterMs }: Reply): FabricError {
  const error = isObject(body) ? body.error : undefined
  if (isObject(error) && typeof error.code === 'string') {
    return new Answered(error as unknown as ErrorBody, status, retryAfterMs)
  }
  const said = saidIn(body)
  return status >= 500
    ? new FabricError('FABRIC_CONNECTION_LOST', `the broker's host answered ${status}${said}`)
    : notABroker(address, `status ${status}${said}`)
}

// The producer's half of a broker's HTTP interface, small and scriptable: what a test wants to go
// wrong it says, and what was asked it can read. Real brokers serve the end-to-end tests.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { ItemInput, JobInfo, ResultLine } from '@fabric/protocol'
import { onTestFinished } from 'vitest'

export type ResultInput = Omit<ResultLine, 'offset'>

interface Scripted {
  readonly status?: number
  readonly headers?: Record<string, string>
  readonly body: unknown
}

/** What a script decides about one request: an answer, a cut connection, or the normal way. */
export type Script = Scripted | 'cut' | 'cut within the body' | undefined

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) text += chunk
  return text
}

function answer(response: ServerResponse, { status = 200, headers = {}, body }: Scripted): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(JSON.stringify(body))
}

export class FakeBroker {
  readonly items = new Map<string, ItemInput>()
  /** Ids of every request to /v1/items, in the order in which requests came. */
  readonly requests: string[][] = []
  readonly results: ResultInput[] = []
  /** `offset` of every request for results. */
  readonly offsets: number[] = []
  readonly headers: IncomingMessage['headers'][] = []
  ended = false
  flushes = 0
  onItems: (items: ItemInput[]) => Script | Promise<Script> = () => undefined
  onFlush: () => Script = () => undefined
  /** Results to send before the connection is cut or, for a number, closed; null = all. */
  /** Refusals of requests for results, before any is answered. */
  readonly resultRefusals: Scripted[] = []
  onResults: (offset: number) => { count: number; cut: boolean } | null = () => null
  address = ''

  async start(): Promise<this> {
    const server = createServer((request, response) => {
      this.#route(request, response).catch(() => response.destroy())
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    this.address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    onTestFinished(() => {
      server.closeAllConnections()
      server.close()
    })
    return this
  }

  info(id = 'j1'): JobInfo {
    const settled = { completed: 0, failed: 0, cancelled: 0, expired: 0, quarantined: 0 }
    for (const result of this.results) settled[result.status] += 1
    return {
      id,
      model: 1,
      createdAt: new Date(0).toISOString(),
      weight: 1,
      state: this.ended ? 'ended' : this.flushes > 0 ? 'flushed' : 'open',
      accepted: this.items.size,
      settled,
      waiting: this.items.size - this.results.length,
      leased: 0,
      unreadResultBytes: 0,
    }
  }

  async #route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url!, this.address)
    const path = `${request.method} ${url.pathname}`
    this.headers.push(request.headers)
    const body = await bodyOf(request)
    if (path === 'POST /v1/items') return this.#items(body, response)
    if (path === 'POST /v1/jobs') {
      const { id } = JSON.parse(body)
      return answer(response, { status: 201, body: this.info(id) })
    }
    const [, job, rest] = /^\/v1\/jobs\/([^/]+)(\/.*)?$/.exec(url.pathname) ?? []
    if (job === 'none') {
      const error = { code: 'FABRIC_NOT_FOUND', message: 'no job "none"', field: 'job' }
      return answer(response, { status: 404, body: { error } })
    }
    if (rest === '/results') return this.#results(Number(url.searchParams.get('offset')), response)
    if (rest === '/flush') {
      const script = this.onFlush()
      if (typeof script === 'string') return void response.destroy()
      this.flushes += 1
      return answer(response, script ?? { body: this.info(job) })
    }
    if (job !== undefined && rest === undefined) return answer(response, { body: this.info(job) })
    if (path === 'GET /v1/state') return answer(response, { body: { consumers: [] } })
    answer(response, { status: 404, body: { error: { code: 'FABRIC_NOT_FOUND', message: path } } })
  }

  async #items(body: string, response: ServerResponse): Promise<void> {
    const items = body
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as ItemInput)
    this.requests.push(items.map((item) => item.id))
    const script = await this.onItems(items)
    if (script === 'cut') return void response.destroy()
    if (script === 'cut within the body') {
      response.writeHead(200, { 'content-type': 'application/json' })
      return void response.write('{"accepted":', () => response.destroy())
    }
    answer(response, script ?? this.accept(items))
  }

  /** Takes the first `count` items; the others are refused for room. */
  accept(items: ItemInput[], count = items.length): Scripted {
    const answers = items.map((item, i) => {
      if (i >= count) {
        const error = { code: 'FABRIC_QUEUE_FULL', message: 'the queue is full' }
        return { id: item.id, status: 'refused', error }
      }
      const status = this.items.has(item.id) ? 'duplicate' : 'accepted'
      this.items.set(item.id, item)
      return { id: item.id, status }
    })
    const refused = Math.max(0, items.length - count)
    const body = { accepted: items.length - refused, duplicate: 0, refused, items: answers }
    return {
      status: count === 0 ? 429 : 200,
      body: refused > 0 ? { ...body, retryAfterMs: 700 } : body,
    }
  }

  #results(offset: number, response: ServerResponse): void {
    this.offsets.push(offset)
    const refusal = this.resultRefusals.shift()
    if (refusal !== undefined) return void answer(response, refusal)
    const limit = this.onResults(offset)
    const end = limit === null ? this.results.length : offset + limit.count
    response.writeHead(200, { 'content-type': 'application/x-ndjson' })
    const lines = this.results
      .slice(offset, end)
      .map((result, i) => `${JSON.stringify({ offset: offset + i, ...result })}\n`)
    response.write(lines.join(''), () => {
      if (limit?.cut) response.destroy()
      else response.end()
    })
  }
}

export const startFakeBroker = (): Promise<FakeBroker> => new FakeBroker().start()

/** An address at which nothing listens: it was free a moment ago. */
export async function closedAddress(): Promise<string> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return `http://127.0.0.1:${port}`
}

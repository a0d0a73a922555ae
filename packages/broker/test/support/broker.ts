// A broker in this process, on a socket and a port of its own, with its log lines kept.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import pino from 'pino'
import { onTestFinished } from 'vitest'
import {
  type BrokerOptions,
  type BrokerState,
  type RunningBroker,
  startBroker,
} from '../../src/index.ts'
import { until } from './until.ts'

interface Answer {
  readonly status: number
  readonly headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: each test says what it expects of the body
  readonly body: any
  readonly text: string
}

export interface TestBroker extends RunningBroker {
  readonly log: { readonly msg: string; readonly level: number; readonly [key: string]: unknown }[]
  get(path: string): Promise<Answer>
  post(path: string, body?: unknown, type?: string): Promise<Answer>
  /** Waits until the state is as `check` says. */
  untilState(check: (state: BrokerState) => boolean): Promise<BrokerState>
}

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'fabric-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

export async function testBroker(
  flags: Record<string, unknown> = {},
  options: Pick<BrokerOptions, 'helloDeadlineMs' | 'openStore'> = {},
): Promise<TestBroker> {
  const log: TestBroker['log'] = []
  const lines = new Writable({
    write(chunk, _encoding, done) {
      log.push(JSON.parse(chunk))
      done()
    },
  })
  const broker = await startBroker({
    flags: {
      socket: join(temporaryFolder(), 'b.sock'),
      http: '127.0.0.1:0',
      hugePages: 'off',
      ringBytes: 4 * 2 ** 20,
      debuggable: true,
      drainTimeoutMs: 0,
      releaseThreshold: 1,
      ...flags,
    },
    log: pino({ level: 'debug' }, lines),
    ...options,
  })
  onTestFinished(() => broker.stop())
  const request = async (method: string, path: string, body?: unknown, type?: string) => {
    const response = await fetch(broker.httpUrl + path, {
      method,
      ...(body === undefined
        ? {}
        : {
            headers: { 'content-type': type ?? 'application/json' },
            body: typeof body === 'string' ? body : JSON.stringify(body),
          }),
    })
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.startsWith('application/json')
    return {
      status: response.status,
      headers: response.headers,
      text,
      body: isJson ? JSON.parse(text) : null,
    }
  }
  return Object.assign(broker, {
    log,
    get: (path: string) => request('GET', path),
    post: (path: string, body?: unknown, type?: string) => request('POST', path, body, type),
    untilState: (check: (state: BrokerState) => boolean) =>
      until(() => {
        const state = broker.state()
        return check(state) ? state : null
      }),
  })
}

/** Items `a0`, `a1`, … of `length` tokens each. */
export const items = (count: number, length = 8, prefix = 'a') =>
  Array.from({ length: count }, (_, i) => ({
    id: `${prefix}${i}`,
    tokens: Array.from({ length }, (_, k) => 100 * i + k),
  }))

export const ndjson = (values: readonly unknown[]) =>
  values.map((value) => JSON.stringify(value)).join('\n')

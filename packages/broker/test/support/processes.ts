// Brokers and consumers as processes of their own, for what only a real process can show: signals,
// kill -9, a socket file left behind. They run what is built in dist/.
import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { onTestFinished } from 'vitest'
import type { BrokerState } from '../../src/index.ts'
import { until } from './until.ts'

const COMMAND = join(import.meta.dirname, '../../bin/fabric-broker.js')
const CONSUMER = join(import.meta.dirname, 'consumer-process.mjs')

export interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

export class TestProcess {
  readonly errorLines: string[] = []
  output = ''
  readonly exited: Promise<Exit>

  constructor(readonly child: ChildProcess) {
    createInterface({ input: child.stderr! }).on('line', (line) => this.errorLines.push(line))
    child.stdout!.on('data', (chunk) => {
      this.output += chunk
    })
    this.exited = new Promise((resolve) =>
      child.on('close', (code, signal) => resolve({ code, signal })),
    )
    onTestFinished(() => {
      child.kill('SIGKILL')
    })
  }

  kill(signal: NodeJS.Signals): void {
    this.child.kill(signal)
  }
}

/** `fabric-broker` with these arguments. */
export function run(...args: string[]): TestProcess {
  return new TestProcess(spawn(process.execPath, [COMMAND, ...args]))
}

export class BrokerProcess extends TestProcess {
  httpUrl = ''

  /** Flags as on the command line; variables of the environment in an object. */
  static spawn(socket: string, ...wishes: (string | NodeJS.ProcessEnv)[]): BrokerProcess {
    const flags = wishes.filter((wish) => typeof wish === 'string')
    const environment = wishes.filter((wish) => typeof wish === 'object')
    const fixed = ['--socket', socket, '--http', '127.0.0.1:0', '--huge-pages', 'off']
    const more = ['--ring-bytes', String(4 * 2 ** 20), '--release-threshold', '1']
    const args = [COMMAND, 'serve', ...fixed, ...more, ...flags]
    const env = Object.assign({}, process.env, ...environment)
    return new BrokerProcess(spawn(process.execPath, args, { env }))
  }

  static async start(
    socket: string,
    ...wishes: (string | NodeJS.ProcessEnv)[]
  ): Promise<BrokerProcess> {
    const broker = BrokerProcess.spawn(socket, ...wishes)
    await broker.listening()
    return broker
  }

  get log(): { msg: string; [key: string]: unknown }[] {
    return this.errorLines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line))
  }

  async listening(): Promise<void> {
    const started = await until(() => {
      if (this.child.exitCode !== null) throw new Error(`broker ended: ${this.errorLines}`)
      return this.log.find(({ httpUrl }) => httpUrl !== undefined)
    })
    this.httpUrl = started.httpUrl as string
  }

  fetch(path: string, body?: unknown): Promise<Response> {
    return fetch(
      this.httpUrl + path,
      body === undefined
        ? {}
        : {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify(body),
          },
    )
  }

  async state(): Promise<BrokerState> {
    return (await (await this.fetch('/v1/state')).json()) as BrokerState
  }

  untilState(check: (state: BrokerState) => boolean): Promise<BrokerState> {
    return until(async () => {
      const state = await this.state()
      return check(state) ? state : null
    })
  }
}

export interface ConsumerWishes {
  readonly name?: string
  /**
   * `hold`: take one batch and keep it until told `go` on standard input. `mortal`: die of the item
   * `poison`. `small`: out of memory with more than half of its batch size. `nack`: give all back.
   * `stillborn`: die of the first batch that comes, before taking it.
   */
  readonly mode?: 'work' | 'hold' | 'mortal' | 'small' | 'nack' | 'stillborn'
  readonly transport?: 'ring' | 'socket'
}

export function spawnConsumer(socket: string, wishes: ConsumerWishes = {}): TestProcess {
  const { name = 'gpu0', mode = 'work', transport = 'ring' } = wishes
  return new TestProcess(spawn(process.execPath, [CONSUMER, socket, name, mode, transport]))
}

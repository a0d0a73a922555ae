// A broker, consumers and a client, each a process of its own, with a job whose every result can be
// told from its item. Any of them may be killed and started again with the arguments it had.
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { BrokerState } from '@fabric/broker'
import { type Item, Output, type OutputCheck } from './output.js'

const bin = (name: string) => join(import.meta.dirname, '../../..', name)
const BROKER = bin('broker/bin/fabric-broker.js')
const CONSUMER = bin('consumer/bin/fabric-consumer.js')
const CLIENT = bin('client/bin/fabric.js')
const RUNTIME = join(import.meta.dirname, 'length-sum-runtime.mjs')

/** Below the ports that connections take by themselves, one of which could be this while no broker runs. */
const PORTS = { first: 20_000, count: 12_000 }

/** The first true value of `check`. */
export async function until<T>(
  check: () => T | Promise<T>,
  what: string,
  deadlineMs = 300_000,
): Promise<NonNullable<T>> {
  const deadline = Date.now() + deadlineMs
  for (;;) {
    const value = await check()
    if (value) return value
    if (Date.now() > deadline) throw new Error(`it never came: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 3))
  }
}

export class Program {
  readonly child: ChildProcess
  readonly exited: Promise<number | string | null>
  out = ''
  errors = ''

  constructor(
    readonly name: string,
    script: string,
    args: readonly string[],
    environment: Readonly<Record<string, string>>,
  ) {
    this.child = spawn(process.execPath, [script, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...environment },
    })
    this.child.stdout?.setEncoding('utf8').on('data', (text) => {
      this.out += text
    })
    this.child.stderr?.setEncoding('utf8').on('data', (text) => {
      this.errors = (this.errors + text).slice(-100_000)
    })
    this.exited = new Promise((resolve) =>
      this.child.on('close', (code, signal) => resolve(code ?? signal)),
    )
  }

  get isRunning(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null
  }

  kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<number | string | null> {
    this.child.kill(signal)
    return this.exited
  }
}

export const itemsOf = (count: number): Item[] =>
  Array.from({ length: count }, (_, i) => ({
    id: `i${i}`,
    tokens: Array.from({ length: 1 + ((i * 7) % 24) }, (_, k) => i + k),
  }))

async function freePort(): Promise<number> {
  for (;;) {
    const port = PORTS.first + Math.floor(Math.random() * PORTS.count)
    const server = createServer()
    const isFree = await new Promise<boolean>((resolve) =>
      server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true)),
    )
    await new Promise((resolve) => server.close(resolve))
    if (isFree) return port
  }
}

export class Plant {
  readonly folder = mkdtempSync(join(tmpdir(), 'fabric-plant-'))
  readonly input = join(this.folder, 'in.jsonl')
  readonly output = join(this.folder, 'out.jsonl')
  readonly results = new Output(this.output)
  readonly dataDir = join(this.folder, 'data')
  readonly socket = join(this.folder, 'b.sock')
  url = ''
  broker: Program | null = null
  client: Program | null = null
  readonly consumers: (Program | null)[] = []
  /** Of all programs that are started from then on. */
  environment: Readonly<Record<string, string>> = {}
  readonly #programs: Program[] = []

  constructor(
    readonly items: readonly Item[],
    readonly brokerFlags: string[],
  ) {
    writeFileSync(this.input, items.map((item) => `${JSON.stringify(item)}\n`).join(''))
  }

  async prepare(): Promise<void> {
    this.url = `http://127.0.0.1:${await freePort()}`
  }

  #start(name: string, script: string, args: readonly string[]): Program {
    const program = new Program(name, script, args, this.environment)
    this.#programs.push(program)
    return program
  }

  /** Does not wait: the broker may be killed before it listens. */
  spawnBroker(): Program {
    const where = ['--socket', this.socket, '--http', new URL(this.url).host]
    const small = ['--huge-pages', 'off', '--ring-bytes', String(4 * 2 ** 20)]
    this.broker = this.#start('broker', BROKER, ['serve', ...where, ...small, ...this.brokerFlags])
    return this.broker
  }

  async listening(): Promise<void> {
    const { broker } = this
    await until(async () => {
      if (!broker?.isRunning) throw new Error(`the broker ended: ${broker?.errors}`)
      return (await this.state()) !== null
    }, 'the broker listens')
  }

  spawnConsumer(index: number): Program {
    const contract = ['--batch-size', '64', '--tokens', '1024', '--input-length', '32']
    const what = ['--model', '1', '--runtime', RUNTIME, '--name', `gpu${index}`]
    const consumer = this.#start(`gpu${index}`, CONSUMER, [
      ...['--broker', `unix:${this.socket}`],
      ...contract,
      ...what,
      ...['--log-level', 'warn'],
    ])
    this.consumers[index] = consumer
    return consumer
  }

  fabric(...args: string[]): Program {
    return this.#start('fabric', CLIENT, [...args, '--broker', this.url])
  }

  /** The same arguments each time. */
  spawnClient(): Program {
    const flags = ['--model', '1', '--order', 'completion', '--quiet', '--summary', 'json']
    this.client = this.fabric('run', this.input, '-o', this.output, ...flags)
    return this.client
  }

  async state(): Promise<BrokerState | null> {
    try {
      return (await (await fetch(`${this.url}/v1/state`)).json()) as BrokerState
    } catch {
      return null // it is down, or was killed within the answer
    }
  }

  /** Those that ought to run and do not: they ended by themselves. */
  get ended(): readonly Program[] {
    const programs = [this.broker, this.client, ...this.consumers]
    return programs.filter((program) => program !== null && !program.isRunning) as Program[]
  }

  check(): OutputCheck {
    return this.results.check(this.items)
  }

  /** Ends what runs. What a failed test leaves is kept to be looked at, with what each program said. */
  async close({ keep = false } = {}): Promise<void> {
    await Promise.all(this.#programs.map((program) => program.kill()))
    if (!keep) {
      rmSync(this.folder, { recursive: true, force: true })
      return
    }
    const said = this.#programs.map(
      ({ name, child, out, errors }) =>
        `== ${name}, process ${child.pid}, ended by ${child.signalCode ?? child.exitCode}\n${out}${errors}`,
    )
    writeFileSync(join(this.folder, 'programs.log'), said.join('\n'))
  }
}

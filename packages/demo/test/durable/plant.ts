// A broker, consumers and a client, each a process of its own, with a job whose every result can be
// told from its item. Any of them may be killed and started again with the arguments it had.
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { BrokerState } from '@fabric/broker'

const bin = (name: string) => join(import.meta.dirname, '../../..', name)
const BROKER = bin('broker/bin/fabric-broker.js')
const CONSUMER = bin('consumer/bin/fabric-consumer.js')
const CLIENT = bin('client/bin/fabric.js')
const RUNTIME = join(import.meta.dirname, 'length-sum-runtime.mjs')

const DEADLINE_MS = 300_000

/** The first true value of `check`. */
export async function until<T>(check: () => T | Promise<T>, what: string): Promise<NonNullable<T>> {
  const deadline = Date.now() + DEADLINE_MS
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
  ) {
    this.child = spawn(process.execPath, [script, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
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

export interface Item {
  readonly id: string
  readonly tokens: readonly number[]
}

export const itemsOf = (count: number): Item[] =>
  Array.from({ length: count }, (_, i) => ({
    id: `i${i}`,
    tokens: Array.from({ length: 1 + ((i * 7) % 24) }, (_, k) => i + k),
  }))

const lengthAndSum = ({ tokens }: Item) => ({
  length: tokens.length,
  sum: tokens.reduce((sum, token) => sum + token, 0),
})

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

export interface OutputCheck {
  readonly lines: number
  readonly duplicates: number
  readonly lost: number
  readonly wrong: readonly string[]
}

export class Plant {
  readonly folder = mkdtempSync(join(tmpdir(), 'fabric-plant-'))
  readonly input = join(this.folder, 'in.jsonl')
  readonly output = join(this.folder, 'out.jsonl')
  readonly dataDir = join(this.folder, 'data')
  readonly socket = join(this.folder, 'b.sock')
  url = ''
  broker: Program | null = null
  client: Program | null = null
  readonly consumers: (Program | null)[] = []
  restarts = 0
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
    const program = new Program(name, script, args)
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

  /** Grows with the results that have reached the output; asks no process. */
  outputBytes(): number {
    return statSync(this.output, { throwIfNoEntry: false })?.size ?? 0
  }

  check(): OutputCheck {
    const text = readFileSync(this.output, 'utf8')
    const wrong: string[] = []
    if (!text.endsWith('\n')) wrong.push('the last line is not whole')
    const expected = new Map(this.items.map((item) => [item.id, lengthAndSum(item)]))
    const seen = new Set<string>()
    let duplicates = 0
    const lines = text.split('\n').slice(0, -1)
    for (const line of lines) {
      const { id, status, result } = JSON.parse(line)
      if (seen.has(id)) duplicates += 1
      seen.add(id)
      const right = expected.get(id)
      if (status !== 'completed' || right?.length !== result.length || right?.sum !== result.sum)
        wrong.push(line)
    }
    const lost = this.items.filter(({ id }) => !seen.has(id)).length
    return { lines: lines.length, duplicates, lost, wrong }
  }

  async close(): Promise<void> {
    await Promise.all(this.#programs.map((program) => program.kill()))
    rmSync(this.folder, { recursive: true, force: true })
  }
}

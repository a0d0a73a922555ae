// One run of the main job with processes of its own: a broker, its consumers, `fabric run`. Used by
// the demo with the real model and by the tests with a tiny one.
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { BrokerState } from '@fabric/broker'
import { DemoProcess, type LogLine } from './processes.js'

export interface WorkloadOptions {
  readonly contract: {
    readonly batchSize: number
    readonly tokens: number
    readonly inputLength: number
    readonly model: number
  }
  readonly consumers: readonly string[]
  readonly modelDir: string
  readonly brokerArgs: readonly string[]
  readonly consumerArgs?: readonly string[]
  /** Arguments of `fabric run` beside input, output, model and broker. */
  readonly clientArgs: readonly string[]
  /** kill -9 the first consumer once this share of the items has completed. */
  readonly killAt?: { readonly share: number; readonly items: number }
  readonly onLog?: (process: string, line: LogLine) => void
}

/** What `fabric run --summary json` says, as far as it is used here. */
export interface RunSummary {
  readonly items: number
  readonly completed: number
  readonly failed: number
  readonly tokens: number
  readonly seconds: number
}

export interface Outcome {
  readonly state: BrokerState
  readonly summary: RunSummary
  readonly killed: string | null
}

/** A GPU would leave the CPU to the broker; here the model runs on it, so it gives way. */
const MODEL_NICE = 10

const require = createRequire(import.meta.url)
const command = (name: string, file: string) =>
  join(dirname(require.resolve(`@fabric/${name}`)), '..', 'bin', file)

export class Workload {
  /** Gone with `close`. */
  readonly dir = mkdtempSync(join(tmpdir(), 'fabric-demo-'))
  readonly input = join(this.dir, 'input.jsonl')
  readonly output = join(this.dir, 'output.jsonl')
  readonly #processes: DemoProcess[] = []
  readonly #options: WorkloadOptions
  #httpUrl = ''

  constructor(options: WorkloadOptions) {
    this.#options = options
  }

  /** Runs `input` through; the consumers are registered before the first item is submitted. */
  async run(): Promise<Outcome> {
    const broker = await this.#startBroker()
    const consumers = await Promise.all(
      this.#options.consumers.map((name) => this.#startConsumer(name)),
    )
    const client = this.#startClient()
    const killed = this.#killDuring(consumers[0], client)
    const { code } = await client.exited
    if (code !== 0) throw new Error(`fabric run ended with exit code ${code}`)
    const state = await this.state()
    const outcome = { state, summary: JSON.parse(client.text) as RunSummary, killed: await killed }
    await this.#stopInOrder([...consumers, broker], outcome.killed)
    return outcome
  }

  async state(): Promise<BrokerState> {
    const response = await fetch(`${this.#httpUrl}/v1/state`)
    return (await response.json()) as BrokerState
  }

  /** Ends whatever still runs and removes the folder. Safe to call twice, and from a signal. */
  async close(): Promise<void> {
    await Promise.all(this.#processes.map((each) => each.stop()))
    rmSync(this.dir, { recursive: true, force: true })
  }

  async #startBroker(): Promise<DemoProcess> {
    const args = ['serve', '--socket', join(this.dir, 'broker.sock'), '--http', '127.0.0.1:0']
    const broker = this.#start('broker', command('broker', 'fabric-broker.js'), [
      ...args,
      ...this.#options.brokerArgs,
    ])
    const started = await broker.waitForLog((line) => typeof line.httpUrl === 'string')
    this.#httpUrl = started.httpUrl as string
    return broker
  }

  async #startConsumer(name: string): Promise<DemoProcess> {
    const { contract, modelDir, consumerArgs = [] } = this.#options
    const flags = {
      broker: `unix:${join(this.dir, 'broker.sock')}`,
      name,
      runtime: 'onnx',
      'model-dir': modelDir,
      device: 'cpu',
      threads: 1,
      'batch-size': contract.batchSize,
      tokens: contract.tokens,
      'input-length': contract.inputLength,
      model: contract.model,
    }
    const args = Object.entries(flags).flatMap(([flag, value]) => [`--${flag}`, String(value)])
    const consumer = this.#start(
      name,
      command('consumer', 'fabric-consumer.js'),
      [...args, ...consumerArgs],
      MODEL_NICE,
    )
    await consumer.waitForLog((line) => typeof line.transport === 'string')
    return consumer
  }

  #startClient(): DemoProcess {
    const { contract, clientArgs } = this.#options
    const client = new DemoProcess({
      name: 'fabric run',
      script: command('client', 'fabric.js'),
      args: [
        'run',
        this.input,
        '-o',
        this.output,
        '--model',
        String(contract.model),
        '--broker',
        this.#httpUrl,
        '--summary',
        'json',
        ...clientArgs,
      ],
      onLog: null,
    })
    this.#processes.push(client)
    return client
  }

  #start(name: string, script: string, args: readonly string[], nice?: number): DemoProcess {
    const { onLog } = this.#options
    const started = new DemoProcess({
      ...{ name, script, args, onLog: (line: LogLine) => onLog?.(name, line) },
      ...(nice === undefined ? {} : { nice }),
    })
    this.#processes.push(started)
    return started
  }

  /** Watches the run's progress and kills the consumer on the way, when that is asked for. */
  async #killDuring(consumer: DemoProcess, client: DemoProcess): Promise<string | null> {
    const { killAt } = this.#options
    if (killAt === undefined) return null
    const wanted = Math.floor(killAt.items * killAt.share)
    while (client.running) {
      const { items } = await this.state()
      if (items.settled.completed >= wanted) {
        consumer.child.kill('SIGKILL')
        await consumer.exited
        return consumer.name
      }
      await Promise.race([client.exited, once(AbortSignal.timeout(50), 'abort')])
    }
    return null
  }

  /** Consumers drain before the broker goes; each must end by itself and cleanly. */
  async #stopInOrder(processes: readonly DemoProcess[], killed: string | null): Promise<void> {
    for (const each of processes) {
      const { code, signal } = await each.stop()
      if (code !== 0 && each.name !== killed) {
        throw new Error(
          `${each.name} did not end cleanly (${signal ?? `exit code ${code}`}):\n${each.lastWords()}`,
        )
      }
    }
  }
}

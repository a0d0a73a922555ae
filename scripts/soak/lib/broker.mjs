// A real broker and honest consumers, each a process of its own.
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { eventually } from './leftovers.mjs'
import { root } from './programs.mjs'

const COMMAND = join(root, 'packages/broker/bin/fabric-broker.js')
const CONSUMER = join(root, 'packages/broker/test/support/consumer-process.mjs')

export function temporaryFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'soak-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  return folder
}

// Each process that is started is ended with this one.
process.setMaxListeners(0)

class Process {
  lines = []
  output = ''

  constructor(child) {
    this.child = child
    createInterface({ input: child.stderr }).on('line', (line) => this.lines.push(line))
    child.stdout.on('data', (chunk) => {
      this.output += chunk
    })
    this.exited = new Promise((resolve) =>
      child.on('close', (code, signal) => resolve(code ?? signal)),
    )
    process.on('exit', () => child.kill('SIGKILL'))
  }

  get alive() {
    return this.child.exitCode === null && this.child.signalCode === null
  }

  kill(signal = 'SIGKILL') {
    this.child.kill(signal)
    return this.exited
  }
}

export class Broker extends Process {
  httpUrl = ''

  /** @throws when it does not listen. */
  static async start(socket, flags = [], env = {}) {
    const args = ['serve', '--socket', socket, '--http', '127.0.0.1:0', '--release-threshold', '1']
    const broker = new Broker(
      spawn(process.execPath, [COMMAND, ...args, ...flags], { env: { ...process.env, ...env } }),
    )
    const listening = await eventually(() => !broker.alive || broker.#url(), 120_000)
    if (!broker.alive || !listening) throw new Error(`no broker: ${broker.lines.join('\n')}`)
    broker.httpUrl = broker.#url()
    return broker
  }

  #url() {
    const line = this.lines.find((text) => text.includes('"httpUrl"'))
    return line === undefined ? '' : JSON.parse(line).httpUrl
  }

  get log() {
    return this.lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line))
  }

  async state() {
    return (await fetch(`${this.httpUrl}/v1/state`)).json()
  }

  post(path, body = '') {
    return fetch(this.httpUrl + path, {
      method: 'POST',
      ...(body === ''
        ? {}
        : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    })
  }

  /** All of them are taken, however often the broker asks to come back later. */
  async submit(items) {
    let left = items
    while (left.length > 0 && this.alive) {
      const answer = await this.post('/v1/items', left)
      if (answer.ok) return
      if (answer.status !== 429) throw new Error(`${answer.status} ${await answer.text()}`)
      await new Promise((resolve) => setTimeout(resolve, 20))
      const { accepted = 0 } = await answer.json().catch(() => ({}))
      left = left.slice(accepted)
    }
  }

  async resultIds() {
    const text = await (await fetch(`${this.httpUrl}/v1/jobs/default/results`)).text()
    return text
      .trim()
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line).id)
  }
}

/** Takes, settles and renews as it should. */
export function honestConsumer(socket, name, mode = 'work') {
  return new Process(spawn(process.execPath, [CONSUMER, socket, name, mode, 'ring']))
}

export function python(script, ...args) {
  return new Process(spawn('python3', [script, ...args.map(String)], { cwd: join(script, '..') }))
}

export const items = (from, count) =>
  Array.from({ length: count }, (_, i) => ({
    id: `i${from + i}`,
    tokens: [from + i, 1, 2, 3, 4, 5, 6, 7],
  }))

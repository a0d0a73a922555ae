// A broker process on the backlog: started, watched, killed; in a memory group where one can be made.
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

const COMMAND = join(import.meta.dirname, '../../packages/broker/bin/fabric-broker.js')
const SAMPLE_MS = 50
const GROUP_NAME = `fabric-bench-${process.pid}`
const GROUPS = [
  { folder: '/sys/fs/cgroup/memory', limit: 'memory.limit_in_bytes', procs: 'cgroup.procs' },
  { folder: '/sys/fs/cgroup', limit: 'memory.max', procs: 'cgroup.procs' },
]

/** A control group with so much memory, or null where none can be made. */
export function memoryGroup(bytes) {
  for (const { folder, limit, procs } of GROUPS) {
    const group = join(folder, GROUP_NAME)
    try {
      mkdirSync(group)
      if (!existsSync(join(group, limit))) throw new Error(`${folder} limits no memory`)
      writeFileSync(join(group, limit), String(bytes))
      return {
        join: (pid) => writeFileSync(join(group, procs), String(pid)),
        remove: () => rmdirSync(group),
      }
    } catch {
      if (existsSync(group)) rmdirSync(group)
    }
  }
  return null
}

export class Broker {
  /** Greatest RssAnon + RssShmem so far: what the page cache holds of the file is not among it. */
  memoryBytes = 0
  httpUrl = ''

  constructor(dataDir, socket, group) {
    this.startedAt = performance.now()
    const where = ['--data-dir', dataDir, '--socket', socket, '--http', '127.0.0.1:0']
    this.child = spawn(process.execPath, [COMMAND, 'serve', ...where], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    group?.join(this.child.pid)
    this.exited = new Promise((resolve) => this.child.once('close', resolve))
    this.sampling = setInterval(() => this.#sample(), SAMPLE_MS)
    let words = ''
    this.listening = new Promise((resolve, reject) => {
      createInterface({ input: this.child.stderr }).on('line', (line) => {
        words += `${line}\n`
        if (!line.includes('"httpUrl"')) return
        this.httpUrl = JSON.parse(line).httpUrl
        resolve(performance.now() - this.startedAt)
      })
      this.exited.then(() => reject(new Error(`the broker ended: ${words}`)))
    })
  }

  #sample() {
    try {
      const status = readFileSync(`/proc/${this.child.pid}/status`, 'utf8')
      const bytes = (name) => 1024 * Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1] ?? 0)
      this.memoryBytes = Math.max(this.memoryBytes, bytes('RssAnon') + bytes('RssShmem'))
    } catch {
      // It has ended.
    }
  }

  async state() {
    return (await fetch(`${this.httpUrl}/v1/state`)).json()
  }

  async kill() {
    clearInterval(this.sampling)
    this.child.kill('SIGKILL')
    await this.exited
  }
}

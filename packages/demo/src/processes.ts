// The demo's processes: started, listened to, ended. None outlives the demo, not even its kill -9.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

/** The kernel ends our children when we are gone: util-linux asks it to, on nearly every Linux. */
const DIES_WITH_US =
  spawnSync('setpriv', ['--pdeathsig', 'TERM', 'true']).status === 0
    ? ['setpriv', '--pdeathsig', 'TERM']
    : []

/** One JSON line of a process's log. */
export interface LogLine {
  readonly msg: string
  readonly [key: string]: unknown
}

export interface ProcessOptions {
  readonly name: string
  /** Path of a JavaScript file, run by this Node. */
  readonly script: string
  readonly args: readonly string[]
  /** Gives way to the others by so much. */
  readonly nice?: number
  /** Sees every log line; null: stderr is the terminal's, and stdout is kept in `text`. */
  readonly onLog: ((line: LogLine) => void) | null
}

export class DemoProcess {
  readonly name: string
  readonly child: ChildProcess
  readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
  /** What a process without `onLog` has written to stdout. */
  text = ''
  readonly #recent: string[] = []
  readonly #waiting = new Set<(line: LogLine) => void>()

  constructor(options: ProcessOptions) {
    this.name = options.name
    const { onLog } = options
    const [command, ...args] = [
      ...DIES_WITH_US,
      ...(options.nice === undefined ? [] : ['nice', '-n', String(options.nice)]),
      ...[process.execPath, options.script, ...options.args],
    ]
    this.child = spawn(command, args, {
      stdio: ['ignore', 'pipe', onLog === null ? 'inherit' : 'pipe'],
    })
    // 'close' comes when the streams have ended too: nothing a process said is missed.
    this.exited = once(this.child, 'close').then(([code, signal]) => ({ code, signal }))
    if (onLog === null) {
      this.child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
        this.text += chunk
      })
      return
    }
    for (const stream of [this.child.stdout, this.child.stderr]) {
      if (stream !== null)
        createInterface({ input: stream }).on('line', (line) => this.#line(line, onLog))
    }
  }

  get running(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null
  }

  /** The first log line that `matches`; an error with the process's last words if it ends before. */
  async waitForLog(matches: (line: LogLine) => boolean): Promise<LogLine> {
    let seen: (line: LogLine) => void = () => {}
    const found = new Promise<LogLine>((resolve) => {
      seen = (line) => {
        if (matches(line)) resolve(line)
      }
      this.#waiting.add(seen)
    })
    const ended = this.exited.then(({ code, signal }) => {
      throw new Error(
        `${this.name} ended (${signal ?? `exit code ${code}`}) too early:\n${this.lastWords()}`,
      )
    })
    try {
      return await Promise.race([found, ended])
    } finally {
      this.#waiting.delete(seen)
    }
  }

  /** Ends the process by SIGTERM, and by SIGKILL when it does not within ten seconds. */
  async stop(): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
    if (this.running) {
      this.child.kill('SIGTERM')
      const timer = setTimeout(() => this.child.kill('SIGKILL'), 10_000)
      await this.exited
      clearTimeout(timer)
    }
    return this.exited
  }

  lastWords(): string {
    return this.#recent.slice(-12).join('\n')
  }

  #line(text: string, onLog: (line: LogLine) => void): void {
    this.#recent.push(text)
    if (this.#recent.length > 100) this.#recent.shift()
    const line = parseLine(text)
    onLog(line)
    for (const waiting of this.#waiting) waiting(line)
  }
}

function parseLine(text: string): LogLine {
  try {
    const value = JSON.parse(text)
    if (typeof value === 'object' && value !== null && typeof value.msg === 'string') return value
  } catch {
    // Not every line of a process is a log line; it is passed on as it stands.
  }
  return { msg: text }
}

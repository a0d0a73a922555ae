// A process under test: its lines, its exit, its end with the test.
import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { Changes } from './changes.js'

const COMMAND = fileURLToPath(new URL('../../bin/fabric-consumer.js', import.meta.url))

export class Process {
  output = ''
  exitCode: number | null = null
  exitSignal: NodeJS.Signals | null = null
  readonly #child: ChildProcess
  readonly #changes = new Changes()

  constructor(script: string, args: readonly string[], env: Record<string, string> = {}) {
    this.#child = spawn(process.execPath, [script, ...args], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, ...env },
    })
    const collect = (chunk: Buffer) => {
      this.output += chunk.toString()
      this.#changes.happened()
    }
    this.#child.stdout?.on('data', collect)
    this.#child.stderr?.on('data', collect)
    this.#child.on('close', (code, signal) => {
      this.exitCode = code
      this.exitSignal = signal
      this.#changes.happened()
    })
    onTestFinished(async () => {
      this.kill('SIGKILL')
      await this.exited()
    })
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  write(text: string): void {
    this.#child.stdin?.write(text)
  }

  /** Waits for `text` in what it wrote; ends with an error when the process does before. */
  async said(text: string): Promise<void> {
    await this.#changes.until(() => this.output.includes(text) || this.#isOver)
    if (!this.output.includes(text))
      throw new Error(`it ended (${this.exitCode}) without saying "${text}":\n${this.output}`)
  }

  async exited(): Promise<number | null> {
    await this.#changes.until(() => this.#isOver)
    return this.exitCode
  }

  get #isOver(): boolean {
    return this.exitCode !== null || this.exitSignal !== null
  }
}

export const fabricConsumer = (args: readonly string[], env: Record<string, string> = {}) =>
  new Process(COMMAND, args, env)

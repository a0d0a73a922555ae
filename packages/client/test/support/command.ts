// The command as users run it: a child process of its own.
import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'

export const BIN = fileURLToPath(new URL('../../bin/fabric.js', import.meta.url))

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface Running {
  readonly child: ChildProcess
  readonly ended: Promise<Ended>
}

export function start(args: readonly string[], { input = '', env = {} } = {}): Running {
  const { FABRIC_BROKER: _, ...inherited } = process.env
  const child = spawn(process.execPath, [BIN, ...args], { env: { ...inherited, ...env } })
  onTestFinished(() => void child.kill('SIGKILL'))
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text) => {
    stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', (text) => {
    stderr += text
  })
  child.stdin.on('error', () => {}) // it may end without reading
  child.stdin.end(input)
  const ended = new Promise<Ended>((resolve) => {
    child.on('close', (code) => resolve({ code, stdout, stderr }))
  })
  return { child, ended }
}

export const fabric = (args: readonly string[], options = {}): Promise<Ended> =>
  start(args, options).ended

export interface OutputLine {
  readonly id: string
  readonly status: string
  readonly attempts: number
  readonly result?: unknown
  readonly error?: { code: string; message: string; field?: string; line?: number }
  readonly truncatedTo?: number
}

export function outputOf(path: string): OutputLine[] {
  const text = readFileSync(path, 'utf8')
  if (text !== '' && !text.endsWith('\n')) throw new Error(`${path} ends within a line`)
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line))
}

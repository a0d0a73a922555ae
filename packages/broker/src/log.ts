// Log lines: JSON for machines, or one readable line each for people.
import { Writable } from 'node:stream'
import pino, { type Logger } from 'pino'

export interface LogOptions {
  readonly level: string
  readonly format: 'json' | 'pretty'
}

/** Lines go to standard error, at once: a process that dies has written its last one. */
export function makeLogger({ level, format }: LogOptions): Logger {
  const options = {
    level,
    base: { name: 'fabric-broker' },
    timestamp: pino.stdTimeFunctions.isoTime,
  }
  if (format === 'json') return pino(options, pino.destination({ dest: 2, sync: true }))
  return pino(options, prettyStream(process.stderr))
}

const LEVELS: Readonly<Record<number, string>> = {
  10: 'trace',
  20: 'debug',
  30: 'info',
  40: 'warn',
  50: 'error',
  60: 'fatal',
}
const SKIPPED = new Set(['level', 'time', 'msg', 'name'])

export function prettyLine(json: string): string {
  const entry = JSON.parse(json) as Record<string, unknown>
  const level = (LEVELS[entry.level as number] ?? '').padEnd(5)
  const details = Object.entries(entry)
    .filter(([key]) => !SKIPPED.has(key))
    .map(([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
  return `${String(entry.time)} ${level} ${String(entry.msg ?? '')}${details.length > 0 ? `  ${details.join(' ')}` : ''}\n`
}

function prettyStream(target: NodeJS.WritableStream): Writable {
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      target.write(prettyLine(chunk.toString()))
      done()
    },
  })
}

// Log lines of the command, on standard error: JSON for machines, or one readable line each for people.
import { type Logger as Pino, pino } from 'pino'

/** At once, without a buffer: a process that is killed has written its last line. */
const stderr = pino.destination({ dest: 2, sync: true })

export function makeLogger(level: string, format: 'json' | 'pretty'): Pino {
  const options = {
    level,
    base: { name: 'fabric-consumer' },
    timestamp: pino.stdTimeFunctions.isoTime,
  }
  if (format === 'json') return pino(options, stderr)
  return pino(options, { write: (line: string) => stderr.write(prettyLine(line)) })
}

export function prettyLine(json: string): string {
  const { level, time, msg, name: _, ...rest } = JSON.parse(json) as Record<string, unknown>
  const label = pino.levels.labels[Number(level)] ?? String(level)
  const details = Object.entries(rest).map(
    ([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  return `${[time, label.padEnd(5), msg, ...details].join(' ')}\n`
}

// A logger whose lines a test can wait for.
import type { Logger } from '@fabric/consumer'
import { Changes } from './changes.js'

interface Line {
  readonly level: keyof Logger
  readonly fields: object
  readonly message: string
}

class Lines extends Array<Line> {
  readonly changes = new Changes()

  until(condition: () => boolean): Promise<void> {
    return this.changes.until(condition)
  }

  static override get [Symbol.species]() {
    return Array
  }
}

export function recordingLogger(): { logger: Logger; lines: Lines } {
  const lines = new Lines()
  const record = (level: keyof Logger) => (fields: object, message: string) => {
    lines.push({ level, fields, message })
    lines.changes.happened()
  }
  const logger = {
    debug: record('debug'),
    info: record('info'),
    warn: record('warn'),
    error: record('error'),
  }
  return { logger, lines }
}

// The story of a run, told from the logs of its processes.
import type { LogLine } from './processes.js'

/**
 * The lines of the logs that tell the story of the run. While a progress bar stands in the terminal
 * they wait: a line in the middle of it would leave half a bar behind.
 */
export class Story {
  readonly #held: string[] = []
  readonly #startedAt = performance.now()

  constructor(public holding: boolean) {}

  tell(name: string, line: LogLine): void {
    const isTold = /registered|gate opened|cleanup|died|reclaimed|ended:|drained/.test(line.msg)
    const isTrouble = /warn|error/.test(String(line.level))
    if (!(name === 'broker' ? isTold : isTrouble)) return
    const at = ((performance.now() - this.#startedAt) / 1000).toFixed(1).padStart(5)
    this.#held.push(`${at} s  ${name}: ${line.msg}\n`)
    if (!this.holding) this.release()
  }

  release(): void {
    this.holding = false
    for (const line of this.#held.splice(0)) process.stderr.write(line)
  }
}

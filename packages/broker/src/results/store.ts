// The result logs of all jobs and the one bound that is over all of them: results that were read
// stay for reading again, up to maxKeptResultBytes; beyond that the oldest read segments go first.
// Unread results are bounded by the core (S34), which is told of every byte stored and read.
import type { ResultHome } from '../jobs.js'
import { ResultLog } from './log.js'
import type { JobResults } from './reader.js'

export class ResultStore implements ResultHome {
  /** Segments that are wholly read, in the order in which they were. */
  #read: { log: ResultLog; bytes: number }[] = []
  #readBytes = 0

  constructor(readonly maxKeptBytes: number) {}

  create(): ResultLog {
    return new ResultLog((log, bytes) => {
      this.#read.push({ log, bytes })
      this.#readBytes += bytes
      this.#trim()
    })
  }

  delete(log: JobResults): void {
    this.#read = this.#read.filter((entry) => entry.log !== log)
    this.#readBytes = this.#read.reduce((sum, entry) => sum + entry.bytes, 0)
  }

  #trim(): void {
    let gone = 0
    while (this.#readBytes > this.maxKeptBytes && gone < this.#read.length) {
      const { log, bytes } = this.#read[gone]
      log.dropOldest()
      this.#readBytes -= bytes
      gone += 1
    }
    if (gone > 0) this.#read.splice(0, gone)
  }
}

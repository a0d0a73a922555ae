// The handler's end of the connection's thread.
import { Worker } from 'node:worker_threads'
import type { Command, ConnectionOptions, Report } from './messages.js'

export interface LinkListener {
  onReport(report: Report): void
  /** The thread broke: a bug, not a lost connection. */
  onBroken(error: Error): void
}

export class Link {
  readonly #worker: Worker
  #isOver = false

  constructor(options: ConnectionOptions, listener: LinkListener) {
    this.#worker = new Worker(new URL('./connection-thread.js', import.meta.url), {
      workerData: options,
      name: 'fabric-connection',
    })
    this.#worker.on('message', (report: Report) => {
      if (report.type === 'closed' || report.type === 'failed') {
        this.#isOver = true
        this.#worker.unref()
      }
      listener.onReport(report)
    })
    this.#worker.on('error', (error) => listener.onBroken(error))
    this.#worker.on('exit', (code) => {
      if (!this.#isOver) listener.onBroken(new Error(`the connection thread ended with ${code}`))
    })
  }

  send(command: Command, transfer: ArrayBuffer[] = []): void {
    if (!this.#isOver) this.#worker.postMessage(command, transfer)
  }
}

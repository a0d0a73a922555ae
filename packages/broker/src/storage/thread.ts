// Questions to a worker thread and their answers, and its beginning and end.
import type { Worker } from 'node:worker_threads'
import { FabricError } from '@fabric/protocol'
import type { Failure, Request } from './messages.js'

interface Waiting {
  resolve(value: unknown): void
  reject(error: Error): void
}

type Started = { readonly kind: string; readonly failure?: Failure }

export class Thread<Ask, Message extends { readonly kind: string }> {
  /** The message that says it is open; rejects when it could not. */
  readonly opened: Promise<Message>
  #start!: Waiting
  readonly #worker: Worker
  readonly #waiting = new Map<number, Waiting>()
  #lastId = 0
  #ended: Error | null = null
  /** It has let go of what it had open. */
  readonly exited: Promise<void>

  constructor(worker: Worker, onMessage: (message: Message) => void) {
    this.#worker = worker
    this.opened = new Promise((resolve, reject) => {
      this.#start = { resolve: resolve as (value: unknown) => void, reject }
    })
    worker.on('message', onMessage)
    worker.on('error', (error) => this.#end(error))
    this.exited = new Promise((resolve) => {
      worker.on('exit', (code) => {
        this.#end(new Error(`the storage thread ended with ${code}`))
        resolve()
      })
    })
  }

  ask<T>(ask: Ask, transfer: ArrayBuffer[] = []): Promise<T> {
    if (this.#ended !== null)
      return Promise.reject(new FabricError('FABRIC_DISK_FAILED', this.#ended.message))
    const id = ++this.#lastId
    const request: Request<Ask> = { id, ask }
    this.#worker.postMessage(request, transfer)
    return new Promise<T>((resolve, reject) => {
      this.#waiting.set(id, { resolve: resolve as (value: unknown) => void, reject })
    })
  }

  answer({ id, value, failure }: { id: number; value?: unknown; failure?: Failure }): void {
    const waiting = this.#waiting.get(id)!
    this.#waiting.delete(id)
    if (failure === undefined) waiting.resolve(value)
    else waiting.reject(new FabricError(failure.code, failure.message))
  }

  started(message: Message): void {
    const { failure } = message as Started
    if (failure === undefined) this.#start.resolve(message)
    else this.#start.reject(new FabricError(failure.code, failure.message))
  }

  async close(ask: Ask): Promise<void> {
    if (this.#ended === null) await this.ask(ask)
    await this.exited
  }

  #end(error: Error): void {
    this.#ended ??= error
    this.#start.reject(error)
    for (const { reject } of this.#waiting.values())
      reject(new FabricError('FABRIC_DISK_FAILED', this.#ended.message, { cause: this.#ended }))
    this.#waiting.clear()
  }
}

// Tokenises off the producer's thread. Batches go to whichever worker is free; each caller gets its
// own batch's ids, so order is the caller's. At most `queue` batches wait: further callers are held
// back, so that a fast reader cannot fill memory with text.
import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { FabricError } from '@fabric/protocol'
import type { TokenizerOptions } from './load.js'
import type { EncodedTexts, EncodeRequest, WorkerReply, WorkerSetup } from './messages.js'

export interface TokenizerPoolOptions extends TokenizerOptions {
  /** A tokenizer.json, or the folder that holds one. */
  readonly tokenizer: string
  /** Threads. Default: one less than the cores, at least one. */
  readonly workers?: number | undefined
  /** Most batches that wait for a worker. Default: two for each. */
  readonly queue?: number | undefined
}

interface Batch {
  readonly texts: readonly string[]
  readonly resolve: (encoded: EncodedTexts) => void
  readonly reject: (error: FabricError) => void
}

interface Thread {
  readonly worker: Worker
  batch: Batch | null
}

const closedError = () => new FabricError('FABRIC_TOKENIZER', 'tokenizer pool: it was closed')

export class TokenizerPool {
  readonly kind: 'wordpiece' | 'huggingface'
  readonly #threads: Thread[]
  readonly #queueMax: number
  #waiting: Batch[] = []
  /** Callers held back because the queue is full, oldest first. */
  #held: (() => void)[] = []
  #failure: FabricError | null = null

  private constructor(workers: Worker[], kind: TokenizerPool['kind'], queueMax: number) {
    this.kind = kind
    this.#queueMax = queueMax
    this.#threads = workers.map((worker) => ({ worker, batch: null }))
    for (const thread of this.#threads) this.#listen(thread)
  }

  /** @throws FabricError FABRIC_TOKENIZER when the tokenizer cannot be loaded. */
  static async open(options: TokenizerPoolOptions): Promise<TokenizerPool> {
    const { tokenizer, workers = Math.max(1, availableParallelism() - 1) } = options
    const setup: WorkerSetup = {
      tokenizer,
      options: { maxLength: options.maxLength, general: options.general },
    }
    const threads = Array.from({ length: Math.max(1, workers) }, () => {
      return new Worker(new URL('./worker.js', import.meta.url), { workerData: setup })
    })
    try {
      const kinds = await Promise.all(threads.map(isReady))
      return new TokenizerPool(threads, kinds[0], options.queue ?? 2 * threads.length)
    } catch (error) {
      await Promise.all(threads.map((worker) => worker.terminate()))
      throw error
    }
  }

  get workers(): number {
    return this.#threads.length
  }

  /** Ids of `texts`, one after another. Waits while the queue is full. */
  async encode(texts: readonly string[]): Promise<EncodedTexts> {
    while (this.#failure === null && this.#waiting.length >= this.#queueMax) {
      await new Promise<void>((resume) => this.#held.push(resume))
    }
    if (this.#failure !== null) throw this.#failure
    return new Promise((resolve, reject) => {
      this.#waiting.push({ texts, resolve, reject })
      this.#dispatch()
    })
  }

  /** Ends the threads; batches that are not done are rejected. */
  async close(): Promise<void> {
    this.#fail(closedError())
    await Promise.all(this.#threads.map(({ worker }) => worker.terminate()))
  }

  #dispatch(): void {
    for (const thread of this.#threads) {
      if (thread.batch !== null) continue
      const batch = this.#waiting.shift()
      if (batch === undefined) return
      thread.batch = batch
      const request: EncodeRequest = { texts: batch.texts }
      thread.worker.postMessage(request)
      this.#held.shift()?.()
    }
  }

  #listen(thread: Thread): void {
    thread.worker.on('message', (reply: WorkerReply) => {
      const { batch } = thread
      thread.batch = null
      if (reply.kind === 'encoded') batch?.resolve({ ids: reply.ids, lengths: reply.lengths })
      else if (reply.kind === 'failed') batch?.reject(FabricError.fromBody(reply.error))
      this.#dispatch()
    })
    thread.worker.on('error', (error) => {
      this.#fail(
        new FabricError('FABRIC_TOKENIZER', `tokenizer worker: ${error.message}`, { cause: error }),
      )
    })
    thread.worker.on('exit', () => this.#fail(closedError()))
  }

  #fail(error: FabricError): void {
    if (this.#failure !== null) return
    this.#failure = error
    for (const thread of this.#threads) thread.batch?.reject(error)
    for (const batch of this.#waiting) batch.reject(error)
    for (const resume of this.#held) resume()
    this.#waiting = []
    this.#held = []
  }
}

function isReady(worker: Worker): Promise<TokenizerPool['kind']> {
  return new Promise((resolve, reject) => {
    worker.once('error', reject)
    worker.once('message', (reply: WorkerReply) => {
      worker.off('error', reject)
      if (reply.kind === 'ready') resolve(reply.tokenizer)
      else if (reply.kind === 'refused') reject(FabricError.fromBody(reply.error))
    })
  })
}

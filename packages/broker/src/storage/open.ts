// The durable store as the broker sees it: this thread's end of the writing and the reading thread.
import { Worker } from 'node:worker_threads'
import type { SubmitBlock } from '@fabric/core'
import type { FabricError } from '@fabric/protocol'
import { packedBytes, packItems } from './columns.js'
import {
  type DirectoryLock,
  lockDataDir,
  makeDataDir,
  removeData,
  reserveLockFile,
  syncDirectory,
} from './data-dir.js'
import { ExitGate } from './exit-gate.js'
import type {
  FromReader,
  FromWriter,
  LentItems,
  Read,
  ResultRange,
  StoreSettings,
  StoreSize,
  Write,
} from './messages.js'
import type { ResultBytes } from './reader.js'
import { readRecord, recordLength } from './result-chunk.js'
import { packSettled, settledBytes } from './settled-columns.js'
import { type LentBuffer, SharedBuffers } from './shared-buffers.js'
import type {
  Append,
  DiskShape,
  LoadedItems,
  Recovery,
  SettledItem,
  Store,
  StoredJob,
  StoreHealth,
  StoreProblem,
} from './store.js'
import { Thread } from './thread.js'

const MiB = 2 ** 20

export type StoreOptions = Partial<Omit<StoreSettings, 'dataDir'>>

const DEFAULTS: Omit<StoreSettings, 'dataDir'> = {
  sync: 'always',
  syncIntervalMs: 100,
  maxKeptResultBytes: 1024 * MiB,
  maxHeldResultBytes: 256 * MiB,
  diskReserveBytes: 64 * MiB,
  probeIntervalMs: 1000,
  faults: null,
  exitFlags: null,
}

/** Packed items under way, and memory that waits for the next ones. */
const SHARED_BYTES_MAX = 32 * MiB

/** @throws FabricError FABRIC_STORE_IN_USE, FABRIC_STORE_VERSION, FABRIC_STORE_DAMAGED, FABRIC_DISK_FAILED, FABRIC_DISK_FULL */
export async function openStore(dataDir: string, options: StoreOptions = {}): Promise<Store> {
  makeDataDir(dataDir)
  const lock = await lockDataDir(dataDir)
  const settings: StoreSettings = { ...DEFAULTS, ...options, dataDir }
  const store = new ThreadedStore(settings, lock)
  try {
    if (settings.sync === 'never') removeData(dataDir)
    reserveLockFile(dataDir)
    await store.open()
    return store
  } catch (error) {
    await store.ended()
    throw error
  }
}

/** Tests run the sources, threads always what was built of them. */
const scriptOf = (name: string) =>
  new URL(
    import.meta.url.endsWith('.ts') ? `../../dist/storage/${name}` : `./${name}`,
    import.meta.url,
  )

class ThreadedStore implements Store {
  recovery: Recovery = { jobs: [], lastSequence: 0, lastJob: -1, problems: [] }
  health: StoreHealth = { state: 'ok' }
  onHealth: ((health: StoreHealth) => void) | null = null
  onProblem: ((problem: StoreProblem) => void) | null = null
  readonly #settings: StoreSettings
  readonly #lock: DirectoryLock
  readonly #exitGate = new ExitGate()
  #writer!: Thread<Write, FromWriter>
  #reader!: Thread<Read, FromReader>
  readonly #ranges = new Map<number, ResultRange>()
  readonly #buffers = new SharedBuffers(SHARED_BYTES_MAX)
  #size: StoreSize = { fileBytes: 0, usedBytes: 0 }
  /** Buffers of the reading thread that nobody looks at any more. */
  readonly #returned: number[] = []
  #isClosing = false
  /** Readers of results, while the disk fails. */
  readonly #waiting: (() => void)[] = []

  constructor(settings: StoreSettings, lock: DirectoryLock) {
    this.#settings = { ...settings, exitFlags: this.#exitGate.flags }
    this.#lock = lock
  }

  async open(): Promise<void> {
    const start = (script: string) =>
      new Worker(scriptOf(script), { workerData: this.#settings, name: `fabric-${script}` })
    this.#writer = new Thread(start('write-thread.js'), (message) => this.#onWriter(message))
    const opened = await this.#writer.opened
    if (opened.kind !== 'opened') return
    this.recovery = opened.recovery
    this.#size = opened.size
    for (const { number, results } of opened.recovery.jobs)
      this.#ranges.set(number, { job: number, ...results })
    // A thread that is open ends when it is told to: whoever is refused waits for that.
    try {
      syncDirectory(this.#settings.dataDir)
      this.#reader = new Thread(start('read-thread.js'), (message) => this.#onReader(message))
      await this.#reader.opened
    } catch (error) {
      await this.#writer.close({ kind: 'close' })
      throw error
    }
  }

  createJob(job: StoredJob): Promise<void> {
    return this.#writer.ask({ kind: 'putJob', job })
  }

  updateJob(job: StoredJob): Promise<void> {
    return this.#writer.ask({ kind: 'putJob', job })
  }

  async deleteJob(number: number): Promise<void> {
    await this.#writer.ask({ kind: 'deleteJob', number })
    this.#ranges.delete(number)
    await this.#reader.ask({ kind: 'forget', job: number })
  }

  lookup(block: SubmitBlock): Promise<Uint8Array> {
    const items = this.#pack(block.job, block, new Float64Array(block.count).fill(1))
    return this.#writer.ask({ kind: 'lookup', items })
  }

  append({ job, block, sequences, acceptedAtMs }: Append): Promise<Uint8Array> {
    const items = this.#pack(job, block, sequences)
    return this.#writer.ask({ kind: 'append', items, acceptedAtMs })
  }

  #pack(job: number, block: SubmitBlock, sequences: Float64Array): LentBuffer {
    const { message, memory } = this.#buffers.lend(packedBytes(block))
    packItems(job, block, sequences, memory)
    return message
  }

  async read(
    job: number,
    shape: DiskShape,
    tokens: number,
    maxBytes: number,
  ): Promise<LoadedItems | null> {
    const lent = await this.#readCommitted<LentItems>(() => {
      const returned = this.#returned.splice(0)
      return { kind: 'read', job, shape, tokens, maxBytes, returned }
    })
    if (lent === null) return null
    const { items, number } = lent
    return number === null ? items : { ...items, release: () => this.#returned.push(number) }
  }

  find(sequence: number, job: number | null = null): Promise<LoadedItems | null> {
    return this.#readCommitted<LoadedItems>(() => ({ kind: 'find', sequence, job }))
  }

  /** What was answered may not be in the index yet: who finds nothing asks again when it is. */
  async #readCommitted<T>(ask: () => Read): Promise<T | null> {
    const found = await this.#reader.ask<T | null>(ask())
    if (found !== null) return found
    await this.#writer.ask({ kind: 'commit' })
    return this.#reader.ask(ask())
  }

  async findId(job: number, id: Uint8Array): Promise<LoadedItems | null> {
    const sequence = await this.#writer.ask<number>({ kind: 'sequenceOf', job, id })
    return sequence < 0 ? null : this.find(sequence, job)
  }

  countAhead(job: number, shape: DiskShape, sequence: number): Promise<number> {
    return this.#reader.ask({ kind: 'countAhead', job, shape, sequence })
  }

  settle(items: readonly SettledItem[]): Promise<Uint8Array> {
    const bytes = settledBytes(items)
    const { message, memory } = this.#buffers.lend(bytes)
    packSettled(items, memory, bytes)
    return this.#writer.ask({ kind: 'settle', count: items.length, bytes, items: message })
  }

  async results(job: number, offset: number, maxBytes: number) {
    const ask: Read = { kind: 'results', job, offset, maxBytes }
    let found = await this.#reader.ask<ResultBytes>(ask)
    // What was settled may not be in the index yet, and comes there late while the disk fails.
    while (found.count === 0 && found.nextOffset < this.resultRange(job).endOffset) {
      await this.#writer.ask({ kind: 'commit' }).catch(() => this.#whenWell())
      const again = await this.#reader.ask<ResultBytes>(ask)
      if (again.count === 0 && this.health.state === 'ok') break
      found = again
    }
    const records = []
    for (let i = 0, at = 0; i < found.count; i++) {
      records.push(readRecord(found.bytes, at))
      at += recordLength(found.bytes, at)
    }
    return { records, nextOffset: found.nextOffset }
  }

  /** Resolves when the disk is well, or nothing more is to be waited for. */
  #whenWell(): Promise<void> {
    if (this.health.state === 'ok' || this.#isClosing) return Promise.resolve()
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  #tellWaiting(): void {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }

  resultRange(job: number): { firstOffset: number; endOffset: number } {
    return this.#ranges.get(job) ?? { firstOffset: 0, endOffset: 0 }
  }

  resultsRead(job: number, offset: number): Promise<number> {
    return this.#writer.ask({ kind: 'resultsRead', job, offset })
  }

  size(): StoreSize {
    return this.#size
  }

  async close(): Promise<void> {
    this.#isClosing = true
    this.#tellWaiting()
    await this.#reader.close({ kind: 'close' })
    await this.#writer.close({ kind: 'close' })
    if (this.#settings.sync === 'never') removeData(this.#settings.dataDir)
    await this.ended()
  }

  /** Lets go of the folder when no thread has a file of it open: whoever takes it next may replace them. */
  async ended(): Promise<void> {
    await Promise.all([this.#writer?.exited, this.#reader?.exited])
    this.#exitGate.remove()
    this.#lock.release()
  }

  #onWriter(message: FromWriter): void {
    switch (message.kind) {
      case 'done':
        this.#size = message.size
        for (const range of message.ranges) this.#ranges.set(range.job, range)
        this.#buffers.giveBack(message.buffers)
        for (const answer of message.answers) this.#writer.answer(answer)
        if (message.removed.length > 0) this.#forgetSegments(message.removed)
        return
      case 'health':
        this.health = message.health
        if (message.health.state === 'ok') this.#tellWaiting()
        this.onHealth?.(message.health)
        return
      case 'problem':
        this.onProblem?.(message.problem)
        return
      default:
        this.#writer.started(message)
    }
  }

  #forgetSegments(segments: readonly number[]): void {
    this.#reader.ask({ kind: 'forgetSegments', segments }).catch(() => {})
  }

  #onReader(message: FromReader): void {
    switch (message.kind) {
      case 'answer':
        this.#reader.answer(message)
        return
      case 'damaged':
        this.#writer
          .ask({ kind: 'setAside', table: message.table, key: message.key })
          .catch((error: FabricError) => this.onProblem?.({ message: error.message, lost: null }))
        return
      default:
        this.#reader.started(message)
    }
  }
}

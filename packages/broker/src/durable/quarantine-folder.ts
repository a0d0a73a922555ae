// Quarantined items outlive the broker as files, one each, in `quarantined` beside the data file: they are
// few, an operator may want to look at one, and an item's own block is gone soon after it has ended.
//
// A file is on disk before its item's end is told to the store, so that no entry is missing; one whose
// item is found unsettled at the start is dropped: the item runs again.
import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Death, QuarantinedItem } from '@fabric/core'

const FOLDER = 'quarantined'
const FILE_NAME = /^(\d+)-(\d+)\.json$/

/** Times are Unix milliseconds; tokens or a payload in base64. */
interface StoredEntry {
  readonly job: number
  readonly item: number
  readonly model: number
  readonly length: number
  readonly id: string
  readonly tokens: readonly number[]
  readonly payload: string
  readonly attempts: number
  readonly deliveries: number
  readonly acceptedAtMs: number
  readonly quarantinedAtMs: number
  readonly deaths: readonly {
    readonly consumer: string
    readonly atMs: number
    readonly cause: Death['cause']
  }[]
}

export class QuarantineFolder {
  readonly #folder: string
  /** Jobs of the items that have a file, by number of the item. */
  readonly #jobs = new Map<number, number>()

  constructor(dataDir: string) {
    this.#folder = join(dataDir, FOLDER)
  }

  /** Numbers of the items that have a file. */
  items(): IterableIterator<number> {
    return this.#jobs.keys()
  }

  /**
   * What earlier lives kept, oldest first. @param toClock from Unix milliseconds to the core's clock
   * @param onDamaged told the path of what cannot be read; it stays as it is
   */
  async load(
    toClock: (unixMs: number) => number,
    onDamaged: (path: string, error: unknown) => void,
  ): Promise<QuarantinedItem[]> {
    const names = await readdir(this.#folder).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return []
      throw error
    })
    const entries: QuarantinedItem[] = []
    for (const name of names) {
      const match = FILE_NAME.exec(name)
      const path = join(this.#folder, name)
      if (match === null) continue
      try {
        const entry = decode(JSON.parse(await readFile(path, 'utf8')), toClock)
        this.#jobs.set(entry.item, entry.job)
        entries.push(entry)
      } catch (error) {
        onDamaged(path, error)
      }
    }
    return entries.sort((a, b) => a.item - b.item)
  }

  /** Resolves when it is synced. @param toUnixMs from the core's clock */
  async keep(entry: QuarantinedItem, toUnixMs: (ns: number) => number): Promise<void> {
    await mkdir(this.#folder, { mode: 0o700, recursive: true })
    const path = this.#pathOf(entry.job, entry.item)
    const file = await open(`${path}.new`, 'w', 0o600)
    try {
      await file.writeFile(JSON.stringify(encode(entry, toUnixMs)))
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(`${path}.new`, path)
    await this.#syncFolder()
    this.#jobs.set(entry.item, entry.job)
  }

  async drop(item: number): Promise<void> {
    const job = this.#jobs.get(item)
    if (job === undefined) return
    this.#jobs.delete(item)
    await rm(this.#pathOf(job, item), { force: true })
  }

  #pathOf(job: number, item: number): string {
    return join(this.#folder, `${job}-${item}.json`)
  }

  async #syncFolder(): Promise<void> {
    const folder = await open(this.#folder, 'r')
    try {
      await folder.sync()
    } finally {
      await folder.close()
    }
  }
}

function encode(entry: QuarantinedItem, toUnixMs: (ns: number) => number): StoredEntry {
  const { job, item, model, length, id, tokens, payload, attempts, deliveries } = entry
  return {
    ...{ job, item, model, length },
    id: new TextDecoder().decode(id),
    tokens: Array.from(tokens),
    payload: Buffer.from(payload).toString('base64'),
    ...{ attempts, deliveries },
    acceptedAtMs: toUnixMs(entry.acceptedAt),
    quarantinedAtMs: toUnixMs(entry.quarantinedAt),
    deaths: entry.deaths.map(({ consumer, at, cause }) => ({
      consumer,
      atMs: toUnixMs(at),
      cause,
    })),
  }
}

function decode(stored: StoredEntry, toClock: (unixMs: number) => number): QuarantinedItem {
  const { job, item, model, length, attempts, deliveries } = stored
  return {
    ...{ job, item, model, length, attempts, deliveries },
    id: new TextEncoder().encode(stored.id),
    tokens: Int32Array.from(stored.tokens),
    payload: new Uint8Array(Buffer.from(stored.payload, 'base64')),
    acceptedAt: toClock(stored.acceptedAtMs),
    quarantinedAt: toClock(stored.quarantinedAtMs),
    deaths: stored.deaths.map(({ consumer, atMs, cause }) => ({
      consumer,
      at: toClock(atMs),
      cause,
    })),
  }
}

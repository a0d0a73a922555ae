// A life of a store with one job, whose items and results are read by their ids.
import { readdirSync } from 'node:fs'
import { Reader } from '../../../src/storage/reader.ts'
import { readRecord, recordLength } from '../../../src/storage/result-chunk.ts'
import { itemsOf, job, type TestItem, textOf } from './items.ts'
import { Life } from './life.ts'

const ALL = 1 << 30
const SHAPE = { model: 1, paddedLength: 8 }

export class JobLife extends Life {
  readonly problems: string[]
  static #sequence = 0

  constructor(
    readonly dataDir: string,
    segmentBytesMax?: number,
  ) {
    const problems: string[] = []
    super(dataDir, ({ message }) => problems.push(message), undefined, segmentBytesMax)
    this.problems = problems
    if (this.writer.recovery([]).jobs.length === 0) this.commit([{ kind: 'putJob', job: job(1) }])
  }

  /** In the log, not in the index. @returns sequences. */
  async append(...appends: (readonly TestItem[])[]): Promise<number[]> {
    const all: number[] = []
    for (const items of appends) {
      const sequences = Float64Array.from(items, () => ++JobLife.#sequence)
      this.admit(1, items, sequences)
      all.push(...sequences)
    }
    await this.write()
    return all
  }

  /** Of items that are padded to 8. */
  ids(): string[] {
    const reader = new Reader(this.environment, () => {})
    const read = reader.read(1, SHAPE, ALL, ALL)
    return read === null ? [] : itemsOf(read).map(({ id }) => id)
  }

  results(): string[] {
    const found = new Reader(this.environment, () => {}).results(1, 0, ALL)
    const ids: string[] = []
    for (let i = 0, at = 0; i < (found?.count ?? 0); i++) {
      ids.push(textOf(readRecord(found!.bytes, at).id))
      at += recordLength(found!.bytes, at)
    }
    return ids
  }
}

export async function withLife<T>(
  dataDir: string,
  use: (life: JobLife) => T | Promise<T>,
  segmentBytesMax?: number,
): Promise<T> {
  const life = new JobLife(dataDir, segmentBytesMax)
  try {
    return await use(life)
  } finally {
    await life.end()
  }
}

export const segmentsOf = (dataDir: string) =>
  readdirSync(dataDir).filter((name) => name.startsWith('segment-'))

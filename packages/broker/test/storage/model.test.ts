// The store against a model of it in plain maps: random appends, settlements, reads, deletions, aborted
// transactions and restarts. A failing seed is printed; SEED=n runs that one.
import { SUBMIT_ACCEPTED, SUBMIT_CONFLICT, SUBMIT_DUPLICATE } from '@fabric/core'
import { describe, expect, test } from 'vitest'
import { Reader } from '../../src/storage/reader.ts'
import { readRecord, recordLength } from '../../src/storage/result-chunk.ts'
import type { SettledItem } from '../../src/storage/store.ts'
import { checkStore } from '../../src/storage/verify.ts'
import { folderInMemory } from './support/folder.ts'
import { item, itemsOf, job, settled, shapeOf, type TestItem, textOf } from './support/items.ts'
import { Life } from './support/life.ts'
import { Random } from './support/random.ts'

const STEPS = 150
const SEEDS =
  process.env.SEED === undefined
    ? Array.from({ length: Number(process.env.SEEDS ?? 8) }, (_, i) => i + 1)
    : [Number(process.env.SEED)]

interface ModelJob {
  readonly ids: Map<string, TestItem>
  /** Unsettled, by sequence, and whether it was read since the start. */
  readonly left: Map<number, { one: TestItem; isRead: boolean }>
  readonly results: string[]
  accepted: number
}

class World {
  readonly dataDir = folderInMemory()
  readonly jobs = new Map<number, ModelJob>()
  readonly random: Random
  life!: Life
  reader!: Reader
  sequence = 0
  lastJob = 0
  lastId = 0
  moved = 0

  constructor(seed: number) {
    this.random = new Random(seed)
    this.open()
  }

  open(): void {
    const fail = (what: unknown) => {
      throw new Error(`reported as damaged: ${JSON.stringify(what)}`)
    }
    // 16 recent ids, so that runs are made and merged all the time; segments of some appends each.
    this.life = new Life(this.dataDir, fail, 16, 8192)
    this.reader = new Reader(this.life.environment, fail)
    for (const { left } of this.jobs.values()) for (const each of left.values()) each.isRead = false
  }

  anyJob(): number {
    return this.random.pick([...this.jobs.keys()])
  }

  newItem(known: Map<string, TestItem>): TestItem {
    const { random } = this
    if (known.size > 0 && random.chance(0.15)) {
      const again = random.pick([...known.values()])
      return random.chance(0.5) ? again : { ...again, seed: again.seed + 1, payload: null }
    }
    const length = 1 + random.below(40)
    const payload = random.chance(0.1) ? Uint8Array.of(1, 2, random.below(256)) : null
    const seed = payload === null ? random.below(1000) : 7
    return item(`id-${++this.lastId}`, length, { model: random.below(2), payload, seed })
  }

  createJob(): void {
    const number = ++this.lastJob
    this.life.commit([{ kind: 'putJob', job: job(number) }])
    this.jobs.set(number, { ids: new Map(), left: new Map(), results: [], accepted: 0 })
  }

  /** Into the log, and now and then into the index too. */
  async append(): Promise<void> {
    this.admit()
    const writing = this.life.write()
    // The next one is made ready while this one is being written.
    if (this.random.chance(0.3)) this.admit()
    await writing
    if (this.life.log.hasWaiting) await this.life.write()
    this.commitSometimes()
  }

  commitSometimes(): void {
    if (this.random.chance(0.1)) this.life.abort()
    if (this.random.chance(0.4)) this.life.commit()
  }

  admit(): void {
    const number = this.anyJob()
    const { ids, left } = this.jobs.get(number)!
    const items = Array.from({ length: 1 + this.random.below(60) }, () => this.newItem(ids))
    const sequences = Float64Array.from(items, () => ++this.sequence)
    const codes = this.life.admit(number, items, sequences)
    items.forEach((one, i) => {
      const known = ids.get(one.id)
      expect(codes[i]).toBe(known === undefined ? SUBMIT_ACCEPTED : codeOf(known, one))
      if (known !== undefined) return
      ids.set(one.id, one)
      left.set(sequences[i], { one, isRead: false })
      this.jobs.get(number)!.accepted += 1
    })
  }

  async settle(): Promise<void> {
    const batch: SettledItem[] = []
    const expected: number[] = []
    for (const [number, model] of this.jobs) {
      for (const [sequence, { one }] of model.left) {
        if (!this.random.chance(0.3)) continue
        batch.push(settled(number, sequence, one, `${one.id}#${sequence}`))
        expected.push(1)
        model.left.delete(sequence)
        model.results.push(`${one.id}#${sequence}`)
        if (this.random.chance(0.1)) {
          batch.push(settled(number, sequence, one, 'again'))
          expected.push(0)
        }
      }
    }
    expect(await this.life.settle(batch)).toEqual(expected)
    this.commitSometimes()
  }

  /** Some steps of compaction, with whatever comes before they are in the index. */
  async move(): Promise<void> {
    for (let steps = 1 + this.random.below(6); steps > 0; steps--)
      this.moved += await this.life.move()
    if (this.random.chance(0.3)) await this.settle()
    this.commitSometimes()
  }

  read(): void {
    this.life.commit()
    const number = this.anyJob()
    const { left } = this.jobs.get(number)!
    const shapes = [...left.values()].map(({ one }) => shapeOf(one))
    if (shapes.length === 0) return
    const shape = this.random.pick(shapes)
    const wanted = [...left].filter(
      ([, { one, isRead }]) =>
        !isRead && one.model === shape.model && shapeOf(one).paddedLength === shape.paddedLength,
    )
    const loaded = this.reader.read(number, shape, 1 + this.random.below(200), 4000)
    const got = loaded === null ? [] : itemsOf(loaded)
    expect(got).toEqual(
      wanted.slice(0, got.length).map(([sequence, { one }]) => ({ ...one, sequence })),
    )
    expect(got.length > 0).toBe(wanted.length > 0)
    for (const { sequence } of got) left.get(sequence)!.isRead = true
  }

  deleteJob(): void {
    if (this.jobs.size < 3) return
    const number = this.anyJob()
    this.life.commit([{ kind: 'deleteJob', number }])
    this.reader.forget(number)
    this.jobs.delete(number)
  }

  async restart(): Promise<void> {
    await this.life.end()
    this.open()
  }

  check(): void {
    this.life.commit()
    const { jobs, lastSequence } = this.life.writer.recovery([])
    expect(jobs.map(({ number }) => number)).toEqual([...this.jobs.keys()])
    expect(lastSequence).toBeLessThanOrEqual(this.sequence)
    for (const { number, accepted, settled: counts, shapes, results } of jobs) {
      const model = this.jobs.get(number)!
      const left = [...model.left.values()]
      expect(accepted).toBe(model.accepted)
      expect(counts.completed).toBe(model.results.length)
      expect(shapes.reduce((sum, { items }) => sum + items, 0)).toBe(left.length)
      expect(shapes.reduce((sum, { tokens }) => sum + tokens, 0)).toBe(
        left.reduce((sum, { one }) => sum + one.length, 0),
      )
      expect(results.endOffset).toBe(model.results.length)
      expect(this.results(number)).toEqual(model.results)
    }
  }

  results(number: number): string[] {
    const values: string[] = []
    for (let offset = 0; ; ) {
      const found = this.reader.results(number, offset, 500)!
      for (let i = 0, at = 0; i < found.count; i++) {
        values.push(textOf(readRecord(found.bytes, at).value))
        at += recordLength(found.bytes, at)
      }
      if (found.nextOffset === offset) return values
      offset = found.nextOffset
    }
  }
}

const codeOf = (known: TestItem, one: TestItem) => {
  const body = ({ model, length, payload, seed }: TestItem) =>
    JSON.stringify([model, length, payload, payload === null ? seed : 0])
  return body(known) === body(one) ? SUBMIT_DUPLICATE : SUBMIT_CONFLICT
}

describe('store against its model', () => {
  test.each(SEEDS)('seed %i: holds what the model holds, after every restart too', async (seed) => {
    const world = new World(seed)
    world.createJob()
    for (let step = 0; step < STEPS; step++) {
      const chance = world.random.below(100)
      if (chance < 3) world.createJob()
      else if (chance < 50) await world.append()
      else if (chance < 65) await world.settle()
      else if (chance < 75) await world.move()
      else if (chance < 92) world.read()
      else if (chance < 94) world.deleteJob()
      else {
        await world.restart()
        world.check()
      }
    }
    world.check()
    expect(world.moved).toBeGreaterThan(0)
    const { life } = world
    while (life.writer.hasWork) life.commit()
    expect(checkStore(life.environment).problems).toEqual([])
    await life.end()
  })
})

// Items on their way into the core: submitted lists, and streams that wait while the queue is full.
// Jobs and the end of their input stand here too, since a flush may have to wait for a stream.
import {
  SUBMIT_CONFLICT,
  SUBMIT_DUPLICATE,
  SUBMIT_QUEUE_FULL,
  SUBMIT_RESULTS_UNREAD,
  SUBMIT_TOO_LARGE,
  type SubmitBlock,
} from '@fabric/core'
import type { ErrorCode } from '@fabric/protocol'
import { type Agenda, type Entry, LISTED } from './agenda.js'
import { ItemStream } from './item-stream.js'
import type { EventData, ItemData } from './scenario/schema.js'
import type { Shelf } from './shelf.js'
import type { Shell } from './shell.js'
import type { StreamData } from './sources.js'
import { blockOf } from './submission.js'

const REFUSALS: Readonly<Record<number, ErrorCode>> = {
  [SUBMIT_CONFLICT]: 'FABRIC_ID_CONFLICT',
  [SUBMIT_TOO_LARGE]: 'FABRIC_TOO_LARGE',
  [SUBMIT_QUEUE_FULL]: 'FABRIC_QUEUE_FULL',
  [SUBMIT_RESULTS_UNREAD]: 'FABRIC_RESULTS_UNREAD',
}
/** Items without a job belong to it. */
const DEFAULT_JOB = 0

interface Stream {
  readonly items: ItemStream
  readonly job: number
  readonly durable: boolean | undefined
  readonly thenFlush: boolean
  readonly entry: Entry
}

export class Arrivals {
  readonly #numbers = new Map<string, number>()
  /** Models of which a job has had items. */
  readonly #models = new Map<number, Set<number>>()
  /** Streams that the full queue holds back, in listed order. */
  #held: Stream[] = []
  /** Jobs whose input ends when no stream of theirs is held any more. */
  readonly #toFlush = new Set<number>()

  constructor(
    private readonly shell: Shell,
    private readonly agenda: Agenda,
  ) {}

  // --- lists

  /** One submission for each run of items of one job and one way to be kept. */
  submit(items: readonly ItemData[]): void {
    for (let from = 0; from < items.length; ) {
      const job = this.#jobNumber(items[from].job)
      const { durable } = items[from]
      const isSame = (item: ItemData) =>
        this.#jobNumber(item.job) === job && item.durable === durable
      let to = from + 1
      while (to < items.length && isSame(items[to])) to++
      this.#submitList(items.slice(from, to), job)
      from = to
    }
  }

  #submitList(items: readonly ItemData[], job: number): void {
    for (const { id, poison } of items) {
      if (poison === true) this.shell.poison.add(`${job}/${id}`)
    }
    const block = blockOf(items, job)
    const codes = this.#offer(block, items[0].durable)
    this.#note(block, codes, codes.length, (i) => items[i].id)
  }

  // --- streams

  planStream(index: number, event: EventData, { source, firstNumber }: StreamData): void {
    const { job, onFull, thenFlush, deadlineMs, maxWaitMs, durable } = {
      ...event,
      ...event.submitMany,
    }
    const number = this.#jobNumber(job)
    const waits = onFull !== 'refuse'
    const items = new ItemStream(source, firstNumber, number, waits, deadlineMs, maxWaitMs)
    const entry: Entry = {
      atNs: source.nextAtNs,
      phase: LISTED,
      order: index,
      act: () => this.#pull(stream),
      cancelled: false,
    }
    const stream: Stream = { items, job: number, durable, thenFlush: thenFlush === true, entry }
    if (entry.atNs < Number.POSITIVE_INFINITY) this.agenda.add(entry)
  }

  /** Asks the held streams again when there may be room; false when nothing came of it. */
  askHeld(): boolean {
    if (this.#held.length === 0 || !this.shell.roomMade) return false
    const { accepted } = this.shell.tally
    const held = this.#held
    this.#held = []
    this.shell.roomMade = false
    for (const stream of held) this.#pull(stream)
    for (const job of this.#toFlush) if (!this.#isHeld(job)) this.#endInput(job)
    return this.shell.tally.accepted > accepted || this.#held.length < held.length
  }

  /** Submits what is due, until nothing is or the queue is full. */
  #pull(stream: Stream): void {
    const { items, entry } = stream
    for (;;) {
      const block = items.next(this.shell.nowNs)
      if (block === null) break
      const codes = this.#offer(block, stream.durable)
      const full = items.waits ? codes.indexOf(SUBMIT_QUEUE_FULL) : -1
      const answered = full < 0 ? block.count : full
      this.#note(block, codes, answered, (i) => items.nameOf(i))
      items.consume(answered)
      if (full < 0) continue
      this.#held.push(stream)
      return
    }
    if (items.nextAtNs < Number.POSITIVE_INFINITY) {
      entry.atNs = items.nextAtNs
      this.agenda.add(entry)
    } else if (stream.thenFlush) this.#flushJob(stream.job)
  }

  /** A code for each item: in disk mode the store has the last word, unless they need not be kept. */
  #offer(block: SubmitBlock, durable: boolean | undefined): Uint8Array {
    this.#ensureJob(block.job)
    const { shelf } = this.shell
    if (shelf !== null && durable !== false) return this.#store(shelf, block)
    for (const effect of this.shell.step({ type: 'submit', block })) {
      if (effect.type === 'submitted') return effect.codes
    }
    throw new Error('the core did not answer a submission')
  }

  #store(shelf: Shelf, block: SubmitBlock): Uint8Array {
    for (const effect of this.shell.step({ type: 'admit', block })) {
      if (effect.type !== 'admitted') continue
      const items = shelf.store(block, effect, this.shell.nowNs)
      this.shell.step({ type: 'stored', items })
      return items.codes
    }
    throw new Error('the core did not answer a durable submission')
  }

  /** Counts what was accepted and says what was not, for the first `count` items of a block. */
  #note(block: SubmitBlock, codes: Uint8Array, count: number, nameOf: (i: number) => string): void {
    const { tally, nowNs } = this.shell
    for (let i = 0; i < count; i++) {
      const code = codes[i]
      if (code === 0) {
        tally.accept(block.model[i], block.lengths[i], nowNs)
        this.#noteModel(block.job, block.model[i])
      } else if (code === SUBMIT_DUPLICATE) {
        this.shell.say({ type: 'duplicate', item: nameOf(i) })
      } else this.shell.say({ type: 'refuse', item: nameOf(i), code: REFUSALS[code] })
    }
  }

  #noteModel(job: number, model: number): void {
    const models = this.#models.get(job)
    if (models === undefined) this.#models.set(job, new Set([model]))
    else models.add(model)
  }

  // --- jobs

  createJob({ name, weight = 1, maxWaitMs }: NonNullable<EventData['createJob']>): void {
    const job = this.#jobNumber(name)
    if (!this.shell.life.jobs.has(job)) this.#makeJob(job, weight, maxWaitMs)
  }

  #makeJob(job: number, weight: number, maxWaitMs?: number): void {
    const wait = maxWaitMs === undefined ? {} : { maxWaitMs }
    this.shell.life.jobs.add(job)
    this.shell.shelf?.createJob(job, weight, maxWaitMs)
    this.shell.step({ type: 'createJob', job, weight, ...wait })
  }

  pause(name: string, isPaused: boolean): void {
    const job = this.#jobNumber(name)
    this.#ensureJob(job)
    this.shell.step({ type: isPaused ? 'pauseJob' : 'resumeJob', job })
  }

  /** In whatever job they are. */
  cancel(ids: readonly string[]): void {
    const wanted = ids.map((id) => Buffer.from(id))
    for (const job of this.shell.life.jobs) {
      const { slots, numbers } = this.shell.core.find(job, wanted)
      if (slots.length > 0) this.shell.step({ type: 'cancel', slots, numbers })
    }
  }

  /** Ends the input of one job, of the jobs that have had items of a model, or of all. */
  flush({ job, model }: NonNullable<EventData['flush']>): void {
    if (job !== undefined) this.#flushJob(this.#jobNumber(job))
    else if (model !== undefined) {
      for (const [number, models] of this.#models) if (models.has(model)) this.#flushJob(number)
    } else {
      for (const number of [DEFAULT_JOB, ...this.#numbers.values()]) this.#flushJob(number)
    }
  }

  /** A producer that waits for room ends its input after it: so does a flush. */
  #flushJob(job: number): void {
    if (this.#isHeld(job)) this.#toFlush.add(job)
    else this.#endInput(job)
  }

  #endInput(job: number): void {
    this.#toFlush.delete(job)
    this.#ensureJob(job)
    const { tally, nowNs } = this.shell
    if (tally.accepted > tally.ended) {
      for (const model of this.#models.get(job) ?? []) tally.times(model).lastInputNs = nowNs
    }
    this.shell.step({ type: 'flush', job })
    this.shell.shelf?.flush(job)
  }

  #isHeld(job: number): boolean {
    return this.#held.some((stream) => stream.job === job)
  }

  #jobNumber(name: string | undefined): number {
    if (name === undefined) return DEFAULT_JOB
    let number = this.#numbers.get(name)
    if (number === undefined) {
      number = this.#numbers.size + 1
      this.#numbers.set(name, number)
    }
    return number
  }

  /** In memory mode a new life of the broker knows the default job only. */
  #ensureJob(job: number): void {
    if (!this.shell.life.jobs.has(job)) this.#makeJob(job, 1)
  }
}

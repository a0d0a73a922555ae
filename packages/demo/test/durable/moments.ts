// When the next process of a plant is killed. The job is cut into one share more than there are kills, and
// its throttle allows a share for each: however results come, the job is under way at every kill, and a
// last share is left after the last one.
//
// Where in its share a kill falls is drawn from the seed, as is what it is measured by: time since the last
// start (programs load, a store is opened, connections come back), items that were accepted (a client
// appends), items that consumers were done with (results are settled), lines of the output (results are
// read). Consumers do a share in a burst, so that most kills fall where much is under way; a short while,
// drawn too, then takes them off the events that are watched, over all of a settlement's way: the ring,
// the commit, the reader, the file.
import { setTimeout as delay } from 'node:timers/promises'
import { type Plant, until } from './plant.js'
import type { Throttle } from './throttle.js'

const MEASURES = ['start', 'append', 'work', 'output'] as const
/** What a kill was measured by, or that nothing moved any more before its moment. */
export const OCCASIONS = [...MEASURES, 'quiet'] as const
export type Occasion = (typeof OCCASIONS)[number]
type Measure = (typeof MEASURES)[number]

/** Of kills by `start`; the others are by one of the rest, as likely each. */
const START_SHARE = 1 / 3

/** A program that is killed so soon has not begun its work. */
const START_MS = 1500
/** Of three batches and what follows them. */
const LATER_MS = 60
/** Longer than whoever lost the broker waits before its next try, at most 5 s. */
const QUIET_MS = 6000
const DEADLINE_MS = 120_000

export interface Job {
  readonly plant: Plant
  readonly throttle: Throttle
  /** Kills in all. */
  readonly rounds: number
  /** Items that may wait: so many are accepted before the last is done. */
  readonly queuedMax: number
  readonly random: () => number
}

export class Moments {
  #moved = 0
  #movedAt = 0

  constructor(readonly job: Job) {}

  /** Resolves when it is time for kill `round`, from 1. */
  async next(round: number): Promise<Occasion> {
    const { plant, throttle, rounds, random } = this.job
    throttle.allow(Math.floor((round * plant.items.length) / (rounds + 1)))
    const measure = this.#draw()
    if (measure === 'start') {
      await delay(random() * START_MS)
      return measure
    }
    const hasCome = await this.#target(measure)
    this.#movedAt = performance.now()
    const check = async () => {
      this.#allRun()
      return (await hasCome()) ? measure : this.#isQuiet() && 'quiet'
    }
    const what = `the moment of kill ${round}, by ${measure}`
    const occasion = await until<Occasion | false>(check, what, DEADLINE_MS)
    await delay(random() * LATER_MS)
    return occasion as Occasion
  }

  #draw(): Measure {
    const { plant, queuedMax, random } = this.job
    if (random() < START_SHARE) return 'start'
    const measure = MEASURES[1 + Math.floor(random() * (MEASURES.length - 1))]
    const isSubmitting = plant.results.lines + queuedMax < plant.items.length
    return measure === 'append' && !isSubmitting ? 'work' : measure
  }

  async #target(measure: Measure): Promise<() => boolean | Promise<boolean>> {
    const { plant, throttle, random } = this.job
    const part = random()
    if (measure === 'work') {
      const target = throttle.executions + part * throttle.left
      return () => throttle.executions >= target
    }
    if (measure === 'output') {
      const { lines } = plant.results
      const target = lines + part * (throttle.distinct + throttle.left - lines)
      return () => plant.results.lines >= target
    }
    // Counted from its own start by each life of the broker.
    let before: number | null = null
    return async () => {
      const accepted = (await plant.state())?.items.accepted ?? null
      before ??= accepted
      return accepted !== null && before !== null && accepted > before
    }
  }

  /** The share is done and nothing moves: work was lost in a kill, and more is not allowed yet. */
  #isQuiet(): boolean {
    const { plant, throttle } = this.job
    const now = performance.now()
    const moved = throttle.executions + plant.results.lines
    if (throttle.left > 0 || moved !== this.#moved) this.#movedAt = now
    this.#moved = moved
    return now - this.#movedAt > QUIET_MS
  }

  #allRun(): void {
    for (const { name, errors } of this.job.plant.ended)
      throw new Error(`${name} ended by itself: ${errors.slice(-2000)}`)
  }
}

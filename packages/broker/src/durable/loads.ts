// Answers the core's loads from the store, whose reading thread waits for the disk instead of the loop.
import type { Effect } from '@fabric/core'
import { NS_PER_MS } from '../clock.js'
import type { LoadedItems } from '../storage/store.js'
import type { DurableHost } from './host.js'

type LoadEffect = Extract<Effect, { type: 'load' }>

/** A disk that fails to read is asked again after so long. */
const READ_AGAIN_MS = 1_000

export class Loads {
  #closed = false
  readonly #underWay = new Map<number, Set<Promise<void>>>()

  constructor(readonly host: DurableHost) {}

  close(): void {
    this.#closed = true
  }

  /** Resolves when what is being read of the job has been answered, or reading failed. */
  async answered(job: number): Promise<void> {
    await Promise.all(this.#underWay.get(job) ?? [])
  }

  load(effect: LoadEffect): void {
    const { job } = effect
    const ofJob = this.#underWay.get(job) ?? new Set()
    this.#underWay.set(job, ofJob)
    const answer = this.#read(effect).finally(() => {
      ofJob.delete(answer)
      if (ofJob.size === 0) this.#underWay.delete(job)
    })
    ofJob.add(answer)
  }

  #read(effect: LoadEffect): Promise<void> {
    const { job, model, paddedLength, tokens, maxBytes } = effect
    return this.host.store.read(job, { model, paddedLength }, tokens, maxBytes).then(
      (found) => this.#answer(effect, found),
      (error) => this.#failed(effect, error),
    )
  }

  #answer({ job, model, paddedLength }: LoadEffect, found: LoadedItems | null): void {
    if (this.#closed) return
    const items = found === null ? null : { ...found, ...this.#times(found) }
    this.host.run({ type: 'loaded', job, model, paddedLength, items })
    // The core has copied what it keeps.
    found?.release?.()
  }

  /** The items wait: the load stays open, and is asked again. */
  #failed(effect: LoadEffect, error: unknown): void {
    if (this.#closed) return
    this.host.story.readFailed(error)
    setTimeout(() => {
      if (!this.#closed) this.load(effect)
    }, READ_AGAIN_MS).unref()
  }

  /** What was accepted in an earlier life counts from this one's beginning (S16), its deadline does not. */
  #times({ acceptedAtMs, block: { deadlineMs = null } }: LoadedItems) {
    const toClock = clockOf(this.host.clock.now())
    return {
      acceptedAt: acceptedAtMs.map((ms) => Math.max(0, toClock(ms))),
      deadlineAt:
        deadlineMs === null
          ? null
          : acceptedAtMs.map((ms, i) =>
              deadlineMs[i] === 0 ? 0 : Math.max(1, toClock(ms + deadlineMs[i])),
            ),
    }
  }
}

/** From Unix milliseconds to the engine's clock, which says `now`. */
export function clockOf(now: number): (unixMs: number) => number {
  const nowMs = Date.now()
  return (unixMs) => Math.round(now - (nowMs - unixMs) * NS_PER_MS)
}

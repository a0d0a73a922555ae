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

  constructor(readonly host: DurableHost) {}

  close(): void {
    this.#closed = true
  }

  load(effect: LoadEffect): void {
    const { job, model, paddedLength, tokens, maxBytes } = effect
    this.host.store.read(job, { model, paddedLength }, tokens, maxBytes).then(
      (found) => this.#answer(effect, found),
      (error) => this.#failed(effect, error),
    )
  }

  #answer({ job, model, paddedLength }: LoadEffect, found: LoadedItems | null): void {
    if (this.#closed) return
    const items =
      found === null ? null : { ...found, acceptedAt: this.#onClock(found.acceptedAtMs) }
    this.host.run({ type: 'loaded', job, model, paddedLength, items })
  }

  /** The items wait: the load stays open, and is asked again. */
  #failed(effect: LoadEffect, error: unknown): void {
    if (this.#closed) return
    this.host.story.readFailed(error)
    setTimeout(() => {
      if (!this.#closed) this.load(effect)
    }, READ_AGAIN_MS).unref()
  }

  /** What was accepted in an earlier life counts from this one's beginning (S16). */
  #onClock(acceptedAtMs: Float64Array): Float64Array {
    const now = this.host.clock.now()
    const nowMs = Date.now()
    return acceptedAtMs.map((ms) => Math.max(0, Math.round(now - (nowMs - ms) * NS_PER_MS)))
  }
}

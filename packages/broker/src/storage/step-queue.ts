// What waits for a transaction of the index, in the order in which it was asked for.
import type { Step } from './writer.js'

export interface PendingStep {
  readonly id: number
  readonly step: Step
  /** It waits until so many of the log's have been taken: no write becomes durable before an earlier one. */
  readonly behind: number
}

export class StepQueue {
  #steps: PendingStep[] = []
  /** Jobs that one of the steps deletes. */
  readonly #ending = new Set<number>()

  add(pending: PendingStep): void {
    this.#steps.push(pending)
    if (pending.step.kind === 'deleteJob') this.#ending.add(pending.step.number)
  }

  get isEmpty(): boolean {
    return this.#steps.length === 0
  }

  isEnding(job: number): boolean {
    return this.#ending.has(job)
  }

  /** The first ones, which wait for no more of the log than was taken. */
  ready(taken: number): PendingStep[] {
    const end = this.#steps.findIndex(({ behind }) => behind > taken)
    return end < 0 ? [...this.#steps] : this.#steps.slice(0, end)
  }

  /** The first ones are done. */
  drop(steps: readonly PendingStep[]): void {
    this.#steps.splice(0, steps.length)
    for (const { step } of steps) if (step.kind === 'deleteJob') this.#ending.delete(step.number)
  }

  /** Takes out those who wait for the index in order to read: they can ask again. */
  takeReaders(): PendingStep[] {
    const readers = this.#steps.filter(({ step }) => step.kind === 'commit')
    if (readers.length > 0) this.#steps = this.#steps.filter(({ step }) => step.kind !== 'commit')
    return readers
  }

  takeAll(): PendingStep[] {
    return this.#steps.splice(0)
  }
}

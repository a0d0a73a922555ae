// A bench with a store beside the core: what disk mode's shell does, in memory.
import type { CoreConfig } from '../src/core-config.js'
import type { Effect } from '../src/effects.js'
import type { CoreEvent } from '../src/events.js'
import type { StoredItems } from '../src/submission.js'
import { Bench, block as blockOf, type ItemSpec } from './helpers.js'
import { ModelStore } from './model-store.js'

export type Of<T extends Effect['type']> = Extract<Effect, { type: T }>

/** A bench with a store; loads are answered at once unless `slow`. */
export class DiskBench extends Bench {
  readonly store = new ModelStore()
  readonly waitingLoads: Of<'load'>[] = []
  slow = false

  constructor(over: Partial<CoreConfig> = {}) {
    super({ mode: 'disk', budgetRule: 'padded', ...over })
  }

  override dispatch(): readonly Effect[] {
    const all: Effect[] = [...super.dispatch()]
    for (;;) {
      const loads = this.of('load').slice(this.answered)
      this.answered += loads.length
      this.waitingLoads.push(...loads)
      if (this.slow || this.waitingLoads.length === 0) return all
      this.answerLoads()
      all.push(...super.dispatch())
    }
  }

  private answered = 0

  answerLoads(): void {
    for (const { job, model, paddedLength, tokens } of this.waitingLoads.splice(0)) {
      const items = this.store.load(job, model, paddedLength, tokens)
      this.only({ type: 'loaded', job, model, paddedLength, items })
    }
  }

  createJob(job: number): void {
    this.store.createJob(job)
    this.do({ type: 'createJob', job })
  }

  /** Admits and appends; `stored` is to be told. */
  admit(items: readonly (number | ItemSpec)[], job = 0): StoredItems {
    const specs = this.specs(items)
    const event: Extract<CoreEvent, { type: 'admit' }> = {
      type: 'admit',
      block: blockOf(specs, job),
    }
    const effects = this.do(event)
    const { sequences } = effects.find(({ type }) => type === 'admitted') as Of<'admitted'>
    const { model, lengths } = event.block
    const rows = specs.map(({ id, length, model = 1 }, i) => ({
      sequence: sequences[i],
      id,
      job,
      model,
      length,
    }))
    const block = specs.some(({ maxWaitMs }) => maxWaitMs !== undefined) ? event.block : null
    return { job, model, lengths, sequences, block, codes: this.store.append(rows) }
  }

  keep(items: readonly (number | ItemSpec)[], job = 0): void {
    this.stored(this.admit(items, job))
  }

  stored(items: StoredItems): void {
    this.do({ type: 'stored', items })
  }

  sentIds(): string[][] {
    return this.sent.map(({ ids }) => [...ids])
  }
}

// What a simulation does, as plain JSON: a configuration and a list of operations, made from a seed
// without a look at the core. Operations name jobs, consumers and batches by a number that is taken
// modulo what exists when it runs, so that any of them can be left out and the rest still means something.

import type { CoreConfig } from '../src/core-config.js'
import { RESULT_FAILED, RESULT_NACK, RESULT_RETRY } from '../src/events.js'
import { asPublished } from './helpers.js'
import { Random } from './random.js'

export interface WorkItem {
  readonly id: number
  readonly length: number
  readonly model: number
  readonly deadlineMs?: number
  /** How long it may be held back (S16). */
  readonly maxWaitMs?: number
  /** Kills whoever takes it (S27). */
  readonly poison?: true
}

export interface WorkContract {
  readonly model: number
  readonly batchSize: number
  readonly tokens: number
  readonly inputLength: number
  readonly roundTo: number
  readonly layout: 'padded' | 'ragged'
  readonly maxInFlight: number
}

/** Which of a batch's items are told of, and how they ended; without them all, as completed. */
interface Report {
  /** Bit i mod 30 of it: whether item i is told of. */
  readonly mask?: number
  /** In turn, over the items told of. */
  readonly outcomes?: readonly number[]
  /** Also an item that was told before, and one that is none. */
  readonly stray?: true
}

export type Operation = {
  /** Loads from disk that are answered before the next operation; without it all. */
  readonly loads?: number
} & (
  | { readonly op: 'createJob'; readonly weight: number; readonly maxWaitMs?: number }
  | {
      readonly op: 'submit'
      readonly job: number
      readonly items: readonly WorkItem[]
      /** In disk mode: to memory all the same; refused by a full disk; told of later. */
      readonly volatile?: true
      readonly full?: true
      readonly later?: true
    }
  | { readonly op: 'stored' }
  | ({ readonly op: 'work'; readonly consumer: number; readonly batch: number } & Report)
  | { readonly op: 'take'; readonly consumer: number }
  | ({ readonly op: 'late'; readonly consumer: number; readonly batch: number } & Report)
  | { readonly op: 'pass'; readonly ms: number }
  | { readonly op: 'register'; readonly name: number; readonly contract: WorkContract }
  | { readonly op: 'silence' | 'drain' | 'disconnect'; readonly consumer: number }
  | { readonly op: 'flush'; readonly job: number | null }
  | { readonly op: 'deleteJob' | 'pause' | 'resume'; readonly job: number }
  | { readonly op: 'restart' }
  | { readonly op: 'room'; readonly consumer: number; readonly hasRoom: boolean }
  | { readonly op: 'takeStray'; readonly consumer: number; readonly batch: number }
  | { readonly op: 'unknown'; readonly consumer: number; readonly isOtherLife: boolean }
  | { readonly op: 'resultsStored' | 'resultsRead'; readonly job: number; readonly bytes: number }
  | { readonly op: 'cancel'; readonly job: number; readonly mask: number }
  | { readonly op: 'replay' | 'discard'; readonly mask: number }
)

export interface Workload {
  /** What differs from the configuration of helpers.ts. */
  readonly config: Partial<CoreConfig>
  /** Padded tokens above which a batch is too much for every consumer (S28); null: none is. */
  readonly memoryTokens: number | null
  readonly operations: readonly Operation[]
}

/** Most seeds are short: they are quick, and find most; a few are long. */
const LENGTHS = [10, 20, 20, 30, 30, 40, 40, 60, 80, 200]

export function workload(seed: number): Workload {
  const random = new Random(seed)
  // Due times have a generator of their own: what else a seed does stays as it was.
  const maker = new Maker(random, new Random(seed + 104_729))
  const operations: Operation[] = []
  for (let jobs = random.int(0, 3); jobs > 0; jobs--) operations.push(maker.createJob())
  for (let left = random.pick(LENGTHS); left > 0; left--) operations.push(maker.next())
  const { memoryTokens } = maker
  return { config: maker.config(seed), memoryTokens, operations }
}

class Maker {
  /** What was submitted: now and then an item comes again, as it was or with another body (S36). */
  private readonly made: WorkItem[] = []
  private readonly models: number
  private readonly longest: number
  private readonly poisonShare: number
  private readonly onDisk: boolean
  private readonly most: number
  readonly memoryTokens: number | null

  constructor(
    private readonly random: Random,
    private readonly due: Random,
  ) {
    this.models = random.int(1, 3)
    this.longest = random.pick([8, 24, 64, 200])
    this.poisonShare = random.pick([0, 0, 0.005, 0.05])
    this.memoryTokens = random.pick([null, null, 40, 200])
    this.onDisk = random.chance(0.4)
    this.most = random.pick([1, 5, 30, 30])
  }

  config(seed: number): Partial<CoreConfig> {
    const { random } = this
    const plain = random.chance(0.15)
    return {
      mode: this.onDisk ? 'disk' : 'memory',
      readAheadTokens: random.pick([0, 100, 10_000]),
      lengthClasses: random.pick([[], [], [16, 64], [20, 21, 40], [300]]),
      overtakeLimit: random.pick([0, 2, 10, 1000]),
      budgetRule: random.pick(['padded', 'padded', 'actual']),
      releaseThreshold: random.pick([null, 0, 100, 1000]),
      maxUnreadResultBytes: random.pick([1000, 1_000_000]),
      spanWaste: random.pick([[0], [0, 0.005, 0.05], [0.05, 0.3], [0.5]]),
      cleanupIdleMs: random.pick([0, 1, 50]),
      cleanupMerge: random.chance(0.8),
      laneOrder: random.chance(0.3) ? 'affinity' : 'round-robin',
      affinityRun: random.pick([1, 2, 16]),
      channelDepth: random.int(1, 3),
      leaseTimeoutMs: random.pick([300, 3000]),
      leaseMaxMs: random.pick([1000, 60_000]),
      laneIdleMs: random.pick([1, 100, 30_000]),
      gateMaxHoldMs: random.pick([0, 500, 30_000]),
      maxQueuedItems: random.pick([40, 1000]),
      maxQueuedTokens: random.pick([2000, 100_000]),
      maxAttempts: random.int(1, 4),
      maxDeliveries: random.pick([2, 6, 20, 20]),
      poisonDeaths: random.pick([1, 2, 2, 3]),
      maxQuarantinedItems: random.pick([1, 1000]),
      resultsTtlMs: random.pick([200, 100_000]),
      maxWaitMs: this.due.pick([0, 0, 30, 1000, 300_000]),
      starveBatches: this.due.pick([0, 0, 1, 5, 10_000]),
      hashSeed: seed,
      // A job below the threshold is held for ever by the plain gate, so it gets none.
      ...(plain ? { ...asPublished, releaseThreshold: 0 } : {}),
    }
  }

  next(): Operation {
    const operation = this.operation()
    // A slow disk: what is ready may wait for it.
    return this.onDisk && this.random.chance(0.15)
      ? { ...operation, loads: this.random.int(0, 2) }
      : operation
  }

  createJob(): Operation {
    const weight = this.random.pick([1, 1, 2, 7])
    const maxWaitMs = this.due.pick([null, null, 0, 50, 2000])
    return { op: 'createJob', weight, ...(maxWaitMs === null ? {} : { maxWaitMs }) }
  }

  private operation(): Operation {
    const { random } = this
    const what = random.int(0, 99)
    if (this.onDisk && random.chance(0.15)) return { op: 'stored' }
    if (what < 30) return this.submit()
    if (what < 60) return this.work()
    if (what < 80) return { op: 'pass', ms: random.pick([0.1, 1, 20, 200]) }
    if (what < 86) return this.register()
    if (what < 89) return this.lose()
    if (what < 92)
      return { op: 'late', consumer: this.any(), batch: this.any(), ...this.report(0.5) }
    if (what < 94) return { op: 'flush', job: random.chance(0.5) ? null : this.any() }
    if (what < 95) return this.createJob()
    if (what < 96) return { op: 'deleteJob', job: this.any() }
    if (what < 97 && this.onDisk) return { op: 'restart' }
    return this.disturb()
  }

  private any(): number {
    return this.random.int(0, 999)
  }

  private mask(share: number): number {
    let mask = 0
    for (let bit = 0; bit < 30; bit++) if (this.random.chance(share)) mask |= 1 << bit
    return mask
  }

  private submit(): Operation {
    const { random } = this
    const model = random.int(1, this.models)
    // What the store keeps of an item has no deadline in it.
    const withDeadlines = !this.onDisk && random.chance(0.2)
    // Nor a wait of its own.
    const withWaits = !this.onDisk && this.due.chance(0.3)
    const items = Array.from({ length: random.int(1, this.most) }, () => {
      const isAgain = this.made.length > 0 && random.chance(0.05)
      if (isAgain && random.chance(0.5)) return random.pick(this.made)
      const item: WorkItem = {
        id: isAgain ? random.pick(this.made).id : this.made.length,
        length: Math.max(1, Math.ceil(this.longest * random.next() ** 2)),
        model: random.chance(0.9) ? model : random.int(1, this.models),
        ...(withDeadlines && random.chance(0.5) ? { deadlineMs: random.int(1, 400) } : {}),
        ...(withWaits && this.due.chance(0.5) ? { maxWaitMs: this.due.pick([1, 20, 500]) } : {}),
        ...(random.chance(this.poisonShare) ? { poison: true as const } : {}),
      }
      this.made.push(item)
      return item
    })
    return {
      op: 'submit',
      job: this.any(),
      items,
      ...(this.onDisk && random.chance(0.2) ? { volatile: true } : {}),
      ...(this.onDisk && random.chance(0.1) ? { full: true } : {}),
      ...(this.onDisk && random.chance(0.5) ? { later: true } : {}),
    }
  }

  private work(): Operation {
    const consumer = this.any()
    if (this.random.chance(0.6)) return { op: 'take', consumer }
    return { op: 'work', consumer, batch: this.any(), ...this.report(0.7) }
  }

  private report(share: number): Report {
    const { random } = this
    const bad = () => random.pick([RESULT_FAILED, RESULT_RETRY, RESULT_NACK])
    return {
      ...(random.chance(share) ? {} : { mask: this.mask(0.5) }),
      ...(random.chance(0.2) ? { outcomes: Array.from({ length: random.int(1, 5) }, bad) } : {}),
      ...(random.chance(0.05) ? { stray: true } : {}),
    }
  }

  private register(): Operation {
    const { random } = this
    const contract: WorkContract = {
      model: random.int(1, this.models),
      batchSize: random.pick([1, 3, 8, 64]),
      tokens: random.pick([16, 64, 200, 1024]),
      inputLength: random.pick([32, 512, 512]),
      roundTo: random.pick([1, 8, 8, 16]),
      layout: random.pick(['padded', 'padded', 'ragged']),
      maxInFlight: random.int(1, 2),
    }
    return { op: 'register', name: random.int(0, 3), contract }
  }

  private lose(): Operation {
    const op = this.random.pick(['silence', 'drain', 'disconnect', 'disconnect'] as const)
    return { op, consumer: this.any() }
  }

  private disturb(): Operation {
    const { random } = this
    const [job, consumer] = [this.any(), this.any()]
    switch (random.int(0, 8)) {
      case 0:
        return { op: 'room', consumer, hasRoom: random.chance(0.7) }
      case 1:
        return { op: 'takeStray', consumer, batch: random.int(1, 50) }
      case 2:
        return { op: 'unknown', consumer, isOtherLife: random.chance(0.5) }
      case 3:
        return { op: 'resultsStored', job, bytes: random.int(0, 1500) }
      case 4:
        return { op: 'resultsRead', job, bytes: random.int(0, 1500) }
      case 5:
        return { op: 'pause', job }
      case 6:
        return { op: 'resume', job }
      case 7:
        return { op: 'cancel', job, mask: this.mask(0.1) }
      default:
        return { op: random.chance(0.7) ? 'replay' : 'discard', mask: this.mask(0.5) }
    }
  }
}

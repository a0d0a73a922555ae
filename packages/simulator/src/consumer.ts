// One simulated consumer: what it holds, what it works on, and when it has last been heard.
//
// It lives through deaths: its name, its script and its totals stay. The simulation decides when it
// is told what; here stand only its state and the arithmetic of its work.
import {
  type Contract,
  RESULT_COMPLETED,
  RESULT_FAILED,
  RESULT_NACK,
  RESULT_OUT_OF_MEMORY,
  RESULT_RETRY,
} from '@fabric/core'
import type { Entry } from './agenda.js'
import type { SimulatedBatch } from './batch.js'
import { IdleTime, type ModelTimes } from './idle-time.js'
import type { ConsumerData, ScriptEntry } from './scenario/schema.js'

const NS_PER_US = 1000

const OUTCOMES: Readonly<Record<ScriptEntry['do'], number>> = {
  fail: RESULT_FAILED,
  retry: RESULT_RETRY,
  nack: RESULT_NACK,
  oom: RESULT_OUT_OF_MEMORY,
}

/** `stopped`: the process is frozen, its connection stands until renewals are missed. */
export type ConsumerState = 'running' | 'stopped' | 'dead'

export class SimulatedConsumer {
  state: ConsumerState = 'dead'
  draining = false
  /** Its number in this life of the broker; -1 while it has no connection. */
  number = -1
  heardAtNs = 0
  /** Dispatched and not taken, oldest first. */
  readonly channel: SimulatedBatch[] = []
  /** Taken, oldest first: it works on the first. */
  readonly inFlight: SimulatedBatch[] = []
  workingSinceNs = -1
  completion: Entry | null = null
  /** Work left on the first batch when it was stopped. */
  frozenNs = -1
  respawn: Entry | null = null
  takenBatches = 0
  lastPaddedLength = 0
  batches = 0
  readonly time: IdleTime
  readonly #byNth = new Map<number, number>()
  readonly #byItem = new Map<string, number>()

  constructor(
    readonly data: ConsumerData,
    readonly contract: Contract,
    times: ModelTimes,
    before: SimulatedConsumer | undefined,
  ) {
    this.time = before?.time ?? new IdleTime(times)
    this.batches = before?.batches ?? 0
    this.takenBatches = before?.takenBatches ?? 0
    for (const { nth, item, do: action } of data.script) {
      if (nth !== undefined) this.#byNth.set(nth, OUTCOMES[action])
      if (item !== undefined) this.#byItem.set(item, OUTCOMES[action])
    }
  }

  get name(): string {
    return this.data.name
  }

  /** Its script speaks of items by name. */
  get needsNames(): boolean {
    return this.#byItem.size > 0
  }

  get canTake(): boolean {
    return (
      this.state === 'running' &&
      this.channel.length > 0 &&
      this.inFlight.length < this.contract.maxInFlight
    )
  }

  serviceNs(batch: SimulatedBatch): number {
    const { fixedUs = 0, perPaddedTokenNs = 0 } = this.data.service ?? {}
    return Math.floor(fixedUs * NS_PER_US + perPaddedTokenNs * batch.budgetTokens)
  }

  /**
   * How each item of its `nth` batch ends: an item's own line of the script wins. An item that is too
   * much for the device is too much for the whole batch (S28).
   */
  outcomes(batch: SimulatedBatch, nth: number): Uint8Array {
    const outcome = new Uint8Array(batch.size).fill(this.#byNth.get(nth) ?? RESULT_COMPLETED)
    if (batch.names !== null && this.#byItem.size > 0) {
      batch.names.forEach((name, i) => {
        outcome[i] = this.#byItem.get(name) ?? outcome[i]
      })
      if (outcome.includes(RESULT_OUT_OF_MEMORY)) outcome.fill(RESULT_OUT_OF_MEMORY)
    }
    return outcome
  }
}

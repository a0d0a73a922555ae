// What a consumer registers, and the rules that the operator may turn.

/** The four integers a GPU registers, with what it may add. */
export interface Contract {
  /** Most items in a batch. */
  readonly batchSize: number
  /** Token budget of a batch. */
  readonly tokens: number
  /** Longest input the runtime takes, tokens. The broker never filters by it (S4). */
  readonly inputLength: number
  readonly model: number
  readonly layout: 'padded' | 'ragged'
  /** Lengths are padded to a multiple of this power of two, 1 to 64. */
  readonly roundTo: number
  /** Most batches taken and not settled. */
  readonly maxInFlight: number
}

/** What the tokens of a contract bound: items x padded length, or the sum of lengths (S17, S18). */
export type BudgetRule = 'padded' | 'actual'

/** Rules the operator may turn; names are those of the configuration file (interfaces.md). */
export interface CoreConfig {
  readonly mode: 'memory' | 'disk' // storage modes; S8
  readonly readAheadTokens: number // window of the disk tier
  readonly roundTo: number // 8: S17
  readonly lengthClasses: readonly number[] // ascending edges; none: each padded length (S20)
  readonly overtakeLimit: number // 1,000 (S20)
  readonly budgetRule: BudgetRule | null // null: by mode (S18)
  readonly readyRule: 'full-batch' | 'batch-size' // S13
  /** By need: most padding that a span adds; `[0]` = no spans (S13a, S13b). */
  readonly spanWaste: readonly number[]
  readonly serve: 'next' | 'first' // S11; 'first' is the plain behaviour
  readonly channelDepth: number // 2
  readonly laneOrder: 'round-robin' | 'affinity' // S15
  readonly affinityRun: number // 16: most batches of one lane in a row (S15)
  readonly activationThreshold: number | null // null: S2's default
  readonly releaseThreshold: number | null // tokens; null: S7's default
  readonly gateOpensOn: 'any' | 'threshold' // 'threshold' is the plain behaviour
  readonly maxWaitMs: number // 300,000: of jobs that name none; 0 = none (S16)
  readonly starveBatches: number // 10,000; 0 = never (S16)
  readonly gateMaxHoldMs: number // 30,000; 0 = never (S10)
  readonly laneIdleMs: number // 30,000 (S3)
  readonly cleanupIdleMs: number // 50; 0 = at once (S29)
  readonly cleanupMerge: boolean // S31; false is the plain behaviour
  readonly leaseTimeoutMs: number // 30,000 (S24)
  readonly leaseMaxMs: number // 3,600,000 (S24)
  readonly retryDelayMs: number // 100, doubling to 30 s (S28)
  readonly maxAttempts: number // 5 (S28)
  readonly maxDeliveries: number // 20 (S28)
  readonly poisonDeaths: number // 2: deaths at which a suspect group splits (S27)
  readonly maxQuarantinedItems: number // 1,000: at more the oldest goes (S27)
  readonly maxBatchBytes: number // 8 MiB (S19)
  readonly maxQueuedItems: number // S34
  readonly maxQueuedTokens: number // S34
  readonly maxItemBytes: number // 1 MiB (S34)
  readonly maxUnreadResultBytes: number // 1 GiB (S34)
  readonly resultsTtlMs: number // S36
  /** Distinguishes lives of the broker in lease ids (S26); random, given from outside. */
  readonly brokerLife: bigint
  /** Seed of the id digests (S36), given from outside: the core draws no random number. */
  readonly hashSeed: number
  /**
   * Token ids are neither given nor kept, though their bytes count for every limit: a simulation
   * knows lengths only. Default: false.
   */
  readonly lengthsOnly?: boolean
  /** Bytes of a segment of item records. Default: 4 MiB; tests fill and leave smaller ones. */
  readonly segmentBytes?: number
}

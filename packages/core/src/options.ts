// The options of the rules: one table, from which the broker makes flags, environment variables, YAML
// keys, help and reference, and the simulator its scenario's `config` (interfaces.md). Values that
// depend on the machine are the shell's to set: the core knows no machine.

import type { BudgetRule, Contract, CoreConfig } from './core-config.js'
import { boolean, choice, integer, integers, numbers, optional } from './option.js'

const MiB = 2 ** 20
const GiB = 2 ** 30
const INT32_MAX = 2 ** 31 - 1
/** The widest rounding a contract may ask for. */
const ROUND_TO_MAX = 64
/** Looking for a length's class stays some steps; nobody captures more graphs. */
const LENGTH_CLASSES_MAX = 1024
/** A frame of a batch is read whole: a greater one would stand for a defect, not for work. */
const BATCH_BYTES_MAX = 64 * MiB

export const STORAGE = 'Storage'
export const GATE = 'Release gate and lanes'
export const PACKING = 'Packing'
export const CLEANUP = 'Cleanup'
export const LEASES = 'Leases and retries'
export const LIMITS = 'Limits'

export const RULE_OPTIONS = {
  mode: choice(['memory', 'disk'], {
    group: STORAGE,
    about:
      'Where accepted items wait: in memory, where they end with the broker, or on disk before their producer is told.',
    fallback: 'memory',
  }),
  readAheadTokens: integer({
    group: STORAGE,
    about:
      'Tokens that are read from disk before their batch is due. What the next batches need is read beyond it.',
    min: 0,
    fallback: 4 * MiB,
  }),

  releaseThreshold: optional(
    integer({
      group: GATE,
      about: 'Tokens that must wait before the first batch leaves (S7).',
      min: 1,
      fallback: 1,
    }),
    'sum over consumers of tokens x (channelDepth + 1), at most half of maxQueuedTokens',
  ),
  gateOpensOn: choice(['any', 'threshold'], {
    group: GATE,
    about: 'What opens the gate: any reason of S7 and S10, or the threshold alone.',
    fallback: 'any',
    published: 'threshold',
  }),
  maxWaitMs: integer({
    group: GATE,
    about:
      'How long an item may be held back for a fuller batch, unless its job or the item itself says so (S16). 0 = any time.',
    min: 0,
    fallback: 300_000,
    published: 0,
  }),
  starveBatches: integer({
    group: GATE,
    about:
      'Items without maxWait, or with one that is over, whose shape was passed over for so many batches of its model are served (S16). 0 = never.',
    min: 0,
    fallback: 10_000,
    published: 0,
  }),
  gateMaxHoldMs: integer({
    group: GATE,
    about: 'The gate opens when the oldest item has waited this long (S10). 0 = never for this.',
    min: 0,
    fallback: 30_000,
    published: 0,
  }),
  activationThreshold: optional(
    integer({
      group: GATE,
      about: 'Items of a shape that make its lane active (S2).',
      min: 1,
      fallback: 1,
    }),
    'the smallest full batch of the consumers of its model',
  ),
  laneIdleMs: integer({
    group: GATE,
    about: 'A lane that was empty for so long stops being active (S3).',
    min: 1,
    fallback: 30_000,
  }),

  roundTo: integer({
    group: PACKING,
    about: 'Lengths are padded to a multiple of this (S17). A consumer may name its own.',
    min: 1,
    max: ROUND_TO_MAX,
    powerOfTwo: true,
    fallback: 8,
  }),
  lengthClasses: integers({
    group: PACKING,
    about:
      'Edges of coarser length classes, such as the lengths at which an engine has captured graphs: items up to an edge wait in one lane (S20). Beyond the last, and without any, each multiple of roundTo is a class. A lane is ready by its edge; a batch is padded to its own longest item.',
    min: 1,
    ascending: true,
    maxCount: LENGTH_CLASSES_MAX,
    fallback: [],
    fallbackText: 'none',
  }),
  overtakeLimit: integer({
    group: PACKING,
    about:
      'Within a lengthClass items of like length leave together, but none overtakes an item of its job that arrived more than so many arrivals earlier (S20).',
    min: 0,
    max: 1_000_000_000,
    fallback: 1000,
  }),
  budgetRule: optional(
    choice(['padded', 'actual'], {
      group: PACKING,
      about:
        'What the tokens of a contract bound: items x padded length (S17), or the sum of lengths (S18; a consumer of the padded layout also gets at most 1.25 times its tokens padded). Decides also the layout of a consumer that names none: padded, or ragged.',
      fallback: 'padded',
    }),
    'padded in memory mode, actual in disk mode',
  ),
  readyRule: choice(['full-batch', 'batch-size'], {
    group: PACKING,
    about: 'A lane is ready when it holds a full batch, or batchSize items (S13).',
    fallback: 'full-batch',
    published: 'batch-size',
  }),
  spanWaste: numbers({
    group: PACKING,
    about:
      'Most padding that a batch over neighbouring lengths may add: while the channel of its consumer holds a batch, when it is empty, when nothing is in flight either (S13a, S13b). 0 = only lanes that are full alone.',
    max: 1,
    most: 3,
    fallback: [0, 0.005, 0.05],
    published: [0],
  }),
  serve: choice(['next', 'first'], {
    group: PACKING,
    about: 'When nothing is ready for the first waiting consumer: try the next, or wait (S11).',
    fallback: 'next',
    published: 'first',
  }),
  laneOrder: choice(['round-robin', 'affinity'], {
    group: PACKING,
    about:
      'Which ready lane a consumer is served from: the next in the round, or the one it was served from last, which saves an engine a change of shape (S15).',
    fallback: 'round-robin',
  }),
  affinityRun: integer({
    group: PACKING,
    about: 'Most batches in a row from one lane under laneOrder affinity (S15).',
    min: 1,
    max: 1_000_000,
    fallback: 16,
  }),
  channelDepth: integer({
    group: PACKING,
    about: 'Batches that stand ready for one consumer beside the one it works on.',
    min: 1,
    max: 64,
    fallback: 2,
  }),
  maxBatchBytes: integer({
    group: PACKING,
    about: 'Most bytes of a batch (S19).',
    min: 4096,
    max: BATCH_BYTES_MAX,
    fallback: 8 * MiB,
  }),

  cleanupIdleMs: integer({
    group: CLEANUP,
    about: 'How long a consumer must be idle with nothing ready before the tail is merged (S29).',
    min: 0,
    fallback: 50,
    published: 0,
  }),
  cleanupMerge: boolean({
    group: CLEANUP,
    about: 'In cleanup, neighbouring shapes share a batch (S31).',
    fallback: true,
    published: false,
  }),

  leaseTimeoutMs: integer({
    group: LEASES,
    about: 'A consumer that renews nothing for so long is dead; its work is given to others (S24).',
    min: 100,
    fallback: 30_000,
  }),
  leaseMaxMs: integer({
    group: LEASES,
    about:
      'A batch that was taken so long ago is reclaimed though its consumer lives; a consumer that could take one for so long and does not is dead (S24).',
    min: 100,
    fallback: 3_600_000,
  }),
  retryDelayMs: integer({
    group: LEASES,
    about: 'Wait before an item is tried again; doubles each time, up to 30 s (S28).',
    min: 0,
    fallback: 100,
  }),
  maxAttempts: integer({
    group: LEASES,
    about: 'Failures after which an item ends as failed (S28).',
    min: 1,
    fallback: 5,
  }),
  maxDeliveries: integer({
    group: LEASES,
    about: 'Deliveries after which an item ends as failed (S28).',
    min: 1,
    max: 65_535,
    fallback: 20,
  }),

  poisonDeaths: integer({
    group: LEASES,
    about:
      'Consumers that die of a batch before it is given out in halves to find the cause (S27).',
    min: 1,
    max: 16,
    fallback: 2,
  }),
  maxQuarantinedItems: integer({
    group: LEASES,
    about:
      'Items that killed their consumers and are kept to be looked at (S27). At more the oldest is dropped; its result stays.',
    min: 1,
    max: 1_000_000,
    fallback: 1000,
  }),

  maxQueuedItems: integer({
    group: LIMITS,
    about: 'Items that may wait; more are answered 429 (S34).',
    min: 1,
    max: INT32_MAX,
    fallback: 20_000_000,
  }),
  maxQueuedTokens: integer({
    group: LIMITS,
    about: 'Tokens that may wait; more are answered 429 (S34). A token takes 4 bytes.',
    min: 1,
    fallback: Number.MAX_SAFE_INTEGER,
    fallbackText: 'none',
  }),
  maxItemBytes: integer({
    group: LIMITS,
    about:
      'Largest item: its token ids or payload, and its id (S34). A larger one is answered 413.',
    min: 64,
    max: 64 * MiB,
    fallback: MiB,
  }),
  maxUnreadResultBytes: integer({
    group: LIMITS,
    about: 'A job with so many unread result bytes takes no new items until they are read (S34).',
    min: 1024,
    fallback: GiB,
  }),
  resultsTtlMs: integer({
    group: LIMITS,
    about: 'A job that has ended is forgotten after this time, with its results and ids (S36).',
    min: 1000,
    fallback: 86_400_000,
  }),
} as const

/** The rule of a storage mode, unless the operator chose one (S18). */
export function budgetRuleOf({
  budgetRule,
  mode,
}: Pick<CoreConfig, 'budgetRule' | 'mode'>): BudgetRule {
  return budgetRule ?? (mode === 'disk' ? 'actual' : 'padded')
}

/** The layout of a consumer that names none (S18). */
export function defaultLayout(rule: BudgetRule): Contract['layout'] {
  return rule === 'actual' ? 'ragged' : 'padded'
}

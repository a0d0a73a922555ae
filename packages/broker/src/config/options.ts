// The one table of options. Flags, environment variables, YAML keys, the help text, the reference
// page and the JSON schema are all made from it; names are the product's face (interfaces.md).
import { totalmem } from 'node:os'
import { DATA_FRAME_BYTES_MAX, INT32_MAX, ROUND_TO_MAX } from '@fabric/protocol'
import { boolean, choice, integer, integers, type Option, optional, text } from './option.js'

const MiB = 2 ** 20
const GiB = 2 ** 30
const quarterOfMemoryBytes = Math.floor(totalmem() / 4)

const LISTENERS = 'Listeners'
const GATE = 'Release gate and lanes'
const PACKING = 'Packing'
const CLEANUP = 'Cleanup'
const LEASES = 'Leases and retries'
const LIMITS = 'Limits'
const RING = 'Rings and consumers'
const PROCESS = 'Process'

export const OPTIONS = {
  socket: optional(
    text({
      group: LISTENERS,
      about: 'Unix socket for consumers on this host; a ring can be handed over only here.',
      expects: 'path',
      fallback: '',
    }),
    '`/run/fabric/broker.sock`, else `$XDG_RUNTIME_DIR/fabric/broker.sock`',
  ),
  http: text({
    group: LISTENERS,
    about:
      'Address of the HTTP interface. Port 0 takes a free one. A host that is not loopback needs `insecure`.',
    expects: 'host:port',
    pattern: /^(\[[0-9a-fA-F:.]+\]|[^:[\]\s]+):\d{1,5}$/,
    fallback: '127.0.0.1:7410',
  }),
  insecure: boolean({
    group: LISTENERS,
    about: 'Allows an HTTP host that other hosts can reach, though nothing asks for credentials.',
    fallback: false,
  }),
  maxBodyBytes: integer({
    group: LISTENERS,
    about: 'Largest body of one HTTP request. A larger one is answered 413.',
    min: 1024,
    max: 512 * MiB,
    fallback: 64 * MiB,
  }),
  maxItemsPerRequest: integer({
    group: LISTENERS,
    about:
      'Most items of one POST /v1/items: elements of its list, or lines of NDJSON with the blank ones. A longer request is answered 413 and nothing of it is accepted.',
    min: 1,
    max: 10_000_000,
    fallback: 100_000,
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
  readyRule: choice(['full-batch', 'batch-size'], {
    group: PACKING,
    about: 'A lane is ready when it holds a full batch, or batchSize items (S13).',
    fallback: 'full-batch',
    published: 'batch-size',
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
    max: DATA_FRAME_BYTES_MAX / 4,
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
    about: 'A batch that was taken so long ago is reclaimed though its consumer lives (S24).',
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
    fallback: Math.floor(quarterOfMemoryBytes / 4),
    fallbackText: 'a quarter of memory, at 4 bytes a token',
  }),
  maxItemBytes: integer({
    group: LIMITS,
    about: 'Largest item: its token ids or payload (S34). A larger one is answered 413.',
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
  maxKeptResultBytes: integer({
    group: LIMITS,
    about:
      'Results that were read stay for reading again, up to so many bytes over all jobs; the oldest go first.',
    min: 0,
    fallback: GiB,
  }),
  resultsTtlMs: integer({
    group: LIMITS,
    about: 'A job that has ended is forgotten after this time, with its results and ids (S36).',
    min: 1000,
    fallback: 86_400_000,
  }),
  maxJobs: integer({
    group: LIMITS,
    about: 'Jobs that are known at once; one more is answered 429.',
    min: 1,
    max: 1_000_000,
    fallback: 10_000,
  }),

  hugePages: choice(['try', 'require', 'off'], {
    group: RING,
    about: 'Whether rings take 2 MiB pages: if they can be had, or else refuse, or never.',
    fallback: 'try',
  }),
  ringBytes: integer({
    group: RING,
    about: 'Smallest ring of a consumer; a power of two. It grows to 8 of the largest batches.',
    min: 4 * MiB,
    max: 2 * GiB,
    powerOfTwo: true,
    fallback: 64 * MiB,
  }),
  ringBytesMax: integer({
    group: RING,
    about: 'All rings together. A consumer beyond it gets its batches through the socket.',
    min: 0,
    fallback: quarterOfMemoryBytes,
    fallbackText: 'a quarter of memory',
  }),
  maxConsumers: integer({
    group: RING,
    about: 'Consumers that may be connected.',
    min: 1,
    max: 10_000,
    fallback: 256,
  }),
  allowUids: integers({
    group: RING,
    about: 'Users that may connect beside the broker’s own and root.',
    fallback: [],
  }),
  allowGids: integers({
    group: RING,
    about: 'Groups whose processes may connect.',
    fallback: [],
  }),

  logLevel: choice(['trace', 'debug', 'info', 'warn', 'error', 'silent'], {
    group: PROCESS,
    about: 'Least severe log line that is written.',
    fallback: 'info',
  }),
  logFormat: choice(['json', 'pretty'], {
    group: PROCESS,
    about: 'Log lines as JSON, or for people.',
    fallback: 'json',
  }),
  drainTimeoutMs: integer({
    group: PROCESS,
    about: 'After SIGTERM the broker waits so long for batches that consumers work on.',
    min: 0,
    fallback: 30_000,
  }),
  debuggable: boolean({
    group: PROCESS,
    about: 'Lets debuggers of the same user attach; they could then also write into rings.',
    fallback: false,
  }),
  asPublished: boolean({
    group: PROCESS,
    about: 'Makes the behaviour of the published design the default of every option it differs in.',
    fallback: false,
  }),
} as const satisfies Record<string, Option<unknown>>

export type OptionName = keyof typeof OPTIONS
type ValueOf<O> = O extends Option<infer T> ? T : never

/** Every option with its value; made by load.ts. */
export type BrokerConfig = { readonly [K in OptionName]: ValueOf<(typeof OPTIONS)[K]> }

export const OPTION_NAMES = Object.keys(OPTIONS) as readonly OptionName[]

export const flagOf = (name: string): string =>
  `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
export const environmentOf = (name: string): string =>
  `FABRIC_${name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`

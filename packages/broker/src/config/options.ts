// The one table of options. Flags, environment variables, YAML keys, the help text, the reference
// page and the JSON schema are all made from it; names are the product's face (interfaces.md).
import { totalmem } from 'node:os'
import {
  boolean,
  choice,
  integer,
  integers,
  LIMITS,
  type Option,
  optional,
  RULE_OPTIONS,
  STORAGE,
  text,
} from '@fabric/core'

const MiB = 2 ** 20
const GiB = 2 ** 30
const quarterOfMemoryBytes = Math.floor(totalmem() / 4)

/** What waits on disk takes no memory: the defaults there only say that something is wrong. */
export const DISK_MAX_QUEUED_ITEMS = 1_000_000_000
export const DISK_MAX_QUEUED_TOKENS = 2 ** 40

const LISTENERS = 'Listeners'
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

  dataDir: optional(
    text({
      group: STORAGE,
      about:
        'Folder in which jobs, items and results are kept, so that they outlive the broker. One broker at a time.',
      expects: 'path',
      fallback: '',
    }),
    'none: memory only',
  ),
  ...RULE_OPTIONS,
  mode: { ...RULE_OPTIONS.mode, fallbackText: 'disk when dataDir is set, else memory' },
  sync: choice(['always', 'relaxed'], {
    group: STORAGE,
    about:
      'Disk mode: whether an accepted item is synced before the producer is told, or within syncIntervalMs after.',
    fallback: 'always',
  }),
  syncIntervalMs: integer({
    group: STORAGE,
    about:
      'With relaxed sync: what was accepted within so long is lost when the broker is killed or the power fails.',
    min: 1,
    max: 60_000,
    fallback: 100,
  }),
  diskReserveBytes: integer({
    group: STORAGE,
    about:
      'Nothing new is accepted with less room on the disk of dataDir, so that what is there can be finished.',
    min: 0,
    fallback: 64 * MiB,
  }),
  spillDir: optional(
    text({
      group: STORAGE,
      about:
        'Memory mode: folder for what memory has no room for, with all results. It outlives nothing: its subfolder `fabric-spill` is emptied at the start.',
      expects: 'path',
      fallback: '',
    }),
    'none: a full queue refuses',
  ),
  spillAboveItems: optional(
    integer({
      group: STORAGE,
      about: 'With spillDir: when so many items wait in memory, new ones wait on disk.',
      min: 1,
      fallback: 1,
    }),
    `${RULE_OPTIONS.maxQueuedItems.fallback}`,
  ),
  spillAboveTokens: optional(
    integer({
      group: STORAGE,
      about: 'The same, in tokens.',
      min: 1,
      fallback: 1,
    }),
    'a quarter of memory, at 4 bytes a token',
  ),
  maxQueuedItems: {
    ...RULE_OPTIONS.maxQueuedItems,
    fallbackText: `${RULE_OPTIONS.maxQueuedItems.fallback}; in disk mode or with spillDir ${DISK_MAX_QUEUED_ITEMS}`,
  },
  maxQueuedTokens: {
    ...RULE_OPTIONS.maxQueuedTokens,
    fallback: Math.floor(quarterOfMemoryBytes / 4),
    fallbackText: `a quarter of memory, at 4 bytes a token; in disk mode or with spillDir ${DISK_MAX_QUEUED_TOKENS}`,
  },
  maxKeptResultBytes: integer({
    group: LIMITS,
    about:
      'Results that were read stay for reading again, up to so many bytes over all jobs; the oldest go first.',
    min: 0,
    fallback: GiB,
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
    // Larger than a core's second-level cache, far smaller than the last: measured, bench/README.md.
    fallback: 16 * MiB,
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
  maxConsumersPerUid: integer({
    group: RING,
    about:
      'Consumers of one user that may be connected, so that none takes all places of the others.',
    min: 1,
    max: 10_000,
    fallback: 128,
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

// The consumer's options, checked once, at construction: what is wrong is named, nothing is guessed.
import { hostname } from 'node:os'
import { inspect } from 'node:util'
import {
  type ContractInput,
  contractSchema,
  describeIssue,
  type ErrorCode,
  FabricError,
  type Layout,
  type TransportWish,
} from '@fabric/protocol'
import type { InputLengthPolicy } from './batches/input-length.js'
import type { ConnectionOptions } from './connection/messages.js'
import { type Logger, silentLogger } from './log.js'

export interface ConsumerOptions {
  /** Address of the broker: `unix:/run/fabric/broker.sock`. */
  readonly broker: string
  /** Most items in a batch. */
  readonly batchSize: number
  /** Token budget of a batch. */
  readonly tokens: number
  /** Longest input the runtime takes. */
  readonly inputLength: number
  readonly model: number
  /** Default `padded`, whatever the broker's budget rule: a handler indexes by paddedLength. */
  readonly layout?: Layout | undefined
  /** Rounding of padded lengths, a power of two. Default: the broker's, 8. */
  readonly roundTo?: number | undefined
  /** Batches worked on at a time. Default 1. */
  readonly maxInFlight?: number | undefined
  /** Shown in the broker's status. Default: host name and process id. */
  readonly name?: string | undefined
  /** Default `auto`: the ring on the same host, else the socket. */
  readonly transport?: TransportWish | undefined
  /** What happens to an item longer than inputLength. Default `truncate`. */
  readonly overlength?: 'truncate' | 'fail' | undefined
  /** A cut input keeps its last token as the last (BERT's [SEP]). Default false: its first tokens. */
  readonly keepLastToken?: boolean | undefined
  /** Default true: after a loss it connects again, with back-off. */
  readonly reconnect?: boolean | undefined
  /** Gives up after this long without a connection. Default: never. */
  readonly connectTimeoutMs?: number | undefined
  /** pino fits. Default: silent. */
  readonly logger?: Logger | undefined
}

export interface CheckedOptions {
  readonly connection: ConnectionOptions
  readonly policy: InputLengthPolicy
  readonly maxInFlight: number
  readonly logger: Logger
}

const CONTRACT = ['batchSize', 'tokens', 'inputLength', 'model', 'layout', 'roundTo', 'maxInFlight']
const OTHERS = [
  'broker',
  'name',
  'transport',
  'overlength',
  'keepLastToken',
  'reconnect',
  'connectTimeoutMs',
  'logger',
]
const NAME_LENGTH_MAX = 128

/** @throws FabricError FABRIC_CONTRACT_INVALID or FABRIC_CONFIG_INVALID, with the field's name */
export function checkOptions(options: ConsumerOptions): CheckedOptions {
  for (const key of Object.keys(options ?? {}))
    if (!CONTRACT.includes(key) && !OTHERS.includes(key))
      throw invalid(key, 'there is no such option')
  const contract = checkContract(options)
  checkOthers(options)
  return {
    connection: {
      socketPath: parseBrokerAddress(options.broker),
      hello: {
        protocol: 1,
        name: options.name ?? `${hostname()}-${process.pid}`.slice(0, NAME_LENGTH_MAX),
        contract,
        transport: options.transport ?? 'auto',
        pid: process.pid,
        host: hostname(),
      },
      reconnect: options.reconnect ?? true,
      connectTimeoutMs: options.connectTimeoutMs ?? null,
    },
    policy: {
      inputLength: contract.inputLength,
      overlength: options.overlength ?? 'truncate',
      keepLastToken: options.keepLastToken ?? false,
    },
    maxInFlight: contract.maxInFlight ?? 1,
    logger: options.logger ?? silentLogger,
  }
}

function checkContract(options: ConsumerOptions): ContractInput {
  const given = Object.entries(options ?? {}).filter(
    ([key, value]) => CONTRACT.includes(key) && value !== undefined,
  )
  const parsed = contractSchema.safeParse(Object.fromEntries(given))
  // Not left to the broker: a handler written for rows of paddedLength would read the wrong tokens, and
  // nothing would tell it, on the day the operator turns on disk mode.
  if (parsed.success) return { ...parsed.data, layout: parsed.data.layout ?? 'padded' }
  const { field, message } = describeIssue(parsed.error)
  const value = Object.fromEntries(given)[field]
  throw invalid(field, `${message}, got ${inspect(value)}`, 'FABRIC_CONTRACT_INVALID')
}

function checkOthers(options: ConsumerOptions): void {
  const { name, transport, overlength, connectTimeoutMs } = options
  const isName = (value: unknown) =>
    typeof value === 'string' && value.length > 0 && value.length <= NAME_LENGTH_MAX
  if (name !== undefined && !isName(name))
    throw invalid('name', `must be 1 to ${NAME_LENGTH_MAX} characters, got ${inspect(name)}`)
  checkOneOf('transport', transport, ['auto', 'ring', 'socket'])
  checkOneOf('overlength', overlength, ['truncate', 'fail'])
  checkOneOf('keepLastToken', options.keepLastToken, [true, false])
  checkOneOf('reconnect', options.reconnect, [true, false])
  if (
    connectTimeoutMs !== undefined &&
    !(Number.isInteger(connectTimeoutMs) && connectTimeoutMs > 0)
  )
    throw invalid(
      'connectTimeoutMs',
      `must be a positive integer, got ${inspect(connectTimeoutMs)}`,
    )
}

function checkOneOf(field: string, value: unknown, allowed: readonly unknown[]): void {
  if (value === undefined || allowed.includes(value)) return
  throw invalid(field, `must be one of ${allowed.join(', ')}, got ${inspect(value)}`)
}

/** sun_path of Linux, less its closing zero. */
const SOCKET_PATH_BYTES_MAX = 107

/** The path in `unix:/path` (or `unix:///path`). */
export function parseBrokerAddress(broker: unknown): string {
  if (typeof broker !== 'string' || broker === '')
    throw invalid(
      'broker',
      `must be an address like unix:/run/fabric/broker.sock, got ${inspect(broker)}`,
    )
  if (/^(tcp|tls):/.test(broker))
    throw invalid(
      'broker',
      `${broker}: this version connects by Unix socket only, on the broker's own host`,
    )
  if (/^https?:/.test(broker))
    throw invalid('broker', `${broker}: producers use this address; a consumer needs unix:PATH`)
  const path = /^unix:(?:\/\/(?=\/))?(.+)$/.exec(broker)?.[1]
  if (path === undefined)
    throw invalid('broker', `${broker}: must be an address like unix:/run/fabric/broker.sock`)
  if (Buffer.byteLength(path) > SOCKET_PATH_BYTES_MAX)
    throw invalid('broker', `${path}: a socket path has at most ${SOCKET_PATH_BYTES_MAX} bytes`)
  return path
}

const invalid = (field: string, why: string, code: ErrorCode = 'FABRIC_CONFIG_INVALID') =>
  new FabricError(code, `${field}: ${why}`, { field })

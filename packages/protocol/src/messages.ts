// The JSON messages of the consumer's connection, checked on arrival. Field names are public.
import { z } from 'zod'
import { type ErrorBody, FabricError } from './errors.js'
import { encodeFrame, FrameType } from './frame.js'
import {
  BATCH_SIZE_MAX,
  INT32_MAX,
  MAX_IN_FLIGHT_MAX,
  PROTOCOL_VERSION,
  ROUND_TO_MAX,
} from './limits.js'

const count = (max: number) => z.int().min(1).max(max)

/** The four integers and what may stand beside them (scheduling.md, Words). */
export const contractSchema = z.strictObject({
  batchSize: count(BATCH_SIZE_MAX),
  tokens: count(INT32_MAX),
  inputLength: count(INT32_MAX),
  model: z.int().min(0).max(INT32_MAX),
  layout: z.enum(['padded', 'ragged']).optional(),
  roundTo: count(ROUND_TO_MAX)
    .refine((n) => (n & (n - 1)) === 0, 'must be a power of two')
    .optional(),
  maxInFlight: count(MAX_IN_FLIGHT_MAX).optional(),
})
export type ContractInput = z.infer<typeof contractSchema>

export const transportSchema = z.enum(['auto', 'ring', 'socket'])
export type TransportWish = z.infer<typeof transportSchema>

export const helloSchema = z.strictObject({
  protocol: z.literal(PROTOCOL_VERSION),
  /** ABI of the ring the consumer can map, or null when its platform has none. */
  ringAbi: z.int().nullable(),
  name: z.string().min(1).max(128),
  contract: contractSchema,
  transport: transportSchema,
  pid: z.int(),
  host: z.string().max(256),
})
export type Hello = z.infer<typeof helloSchema>

export const welcomeSchema = z.object({
  protocol: z.literal(PROTOCOL_VERSION),
  /** The broker's name for this consumer: unique among those connected. */
  name: z.string(),
  /** Random 64 bits in hex: part of every lease (S26). */
  brokerLife: z.string().regex(/^[0-9a-f]{16}$/),
  /** It takes results of batches that an earlier life of it gave out. */
  earlierResults: z.boolean().optional(),
  leaseTimeoutMs: z.number(),
  renewEveryMs: z.number(),
  layout: z.enum(['padded', 'ragged']),
  roundTo: z.number(),
  maxInFlight: z.number(),
  transport: z.enum(['ring', 'socket']),
  /** Why this transport, in words for a log line and the status page. */
  transportReason: z.string(),
  ring: z.object({ capacityBytes: z.number(), pageSizeBytes: z.number() }).nullable(),
  warnings: z.array(z.string()),
})
export type Welcome = z.infer<typeof welcomeSchema>

const errorSchema = z.object({
  code: z.string(),
  message: z.string(),
  field: z.string().optional(),
})

/** Like "contract.batchSize: Too small: expected number to be >=1 (got 0)". */
export function describeIssue(error: z.ZodError): { field: string; message: string } {
  const issue = error.issues[0]
  const keys =
    issue?.code === 'unrecognized_keys' ? [...issue.path, issue.keys[0]] : (issue?.path ?? [])
  return { field: keys.map(String).join('.'), message: issue?.message ?? 'invalid' }
}

function decodeJson<T>(schema: z.ZodType<T>, body: Uint8Array, what: string): T {
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch (cause) {
    throw new FabricError('FABRIC_PROTOCOL', `${what} is not JSON`, { cause })
  }
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const { field, message } = describeIssue(parsed.error)
  const code = field.startsWith('contract') ? 'FABRIC_CONTRACT_INVALID' : 'FABRIC_PROTOCOL'
  throw new FabricError(code, `${what}: ${field || 'body'}: ${message}`, { field })
}

const encodeJson = (type: FrameType, value: unknown) =>
  encodeFrame(type, new TextEncoder().encode(JSON.stringify(value)))

export const encodeHello = (hello: Hello) => encodeJson(FrameType.hello, hello)
export const encodeWelcome = (welcome: Welcome) => encodeJson(FrameType.welcome, welcome)
export const encodeError = (error: ErrorBody) => encodeJson(FrameType.error, error)
export const decodeHello = (body: Uint8Array): Hello => decodeJson(helloSchema, body, 'hello')
export const decodeWelcome = (body: Uint8Array): Welcome =>
  decodeJson(welcomeSchema, body, 'welcome')
export const decodeError = (body: Uint8Array): FabricError =>
  FabricError.fromBody(decodeJson(errorSchema, body, 'error') as ErrorBody)

export function encodeTaken(batch: number): Uint8Array {
  const body = new Uint8Array(8)
  new DataView(body.buffer).setBigUint64(0, BigInt(batch), true)
  return encodeFrame(FrameType.taken, body)
}

export function decodeTaken(body: Uint8Array): number {
  if (body.byteLength !== 8)
    throw new FabricError('FABRIC_PROTOCOL', `taken: ${body.byteLength} bytes, 8 expected`)
  return Number(new DataView(body.buffer, body.byteOffset).getBigUint64(0, true))
}

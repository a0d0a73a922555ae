/** The addon: its shape, and loading it once for each environment. */
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { RingError } from './errors.js'

/** The version of the bytes in shared memory; both sides must have the same. */
export const RING_ABI_VERSION: number = 2

export interface NativeRingWriter {
  claim(payloadBytes: number): bigint | null
  commit(position: bigint, batchSequence: number): void
  abort(position: bigint): void
  taken(position: bigint, payloadBytes: number): boolean
  armSpace(callback: (wake: number) => void): number
  spaceMoved(): boolean
  disarmSpace(): void
  share(): bigint
  descriptors(): number[]
  closePeerDescriptors(): void
  stat(): RingStat
  memory(): ArrayBuffer
  about(): {
    capacityBytes: number
    pages: number
    pageSizeBytes: number
    pagesReason: string
    maxPayloadBytes: number
    ringId: bigint
  }
  close(): void
}

export interface NativeRingReader {
  next(): ArrayBuffer | null
  waitSync(timeoutMs: number, spins: number): boolean
  ended(): boolean
  take(position: bigint): void
  release(position: bigint): boolean
  held(): number
  onReadable(callback: () => void): void
  ref(): void
  unref(): void
  about(): { capacityBytes: number; pages: number; pageSizeBytes: number; ringId: bigint }
  close(): void
}

export interface NativePeerWatch {
  gone(): boolean
  close(): void
}

/**
 * What the ring has done so far; `usedBytes` is now, the others only grow. Positions are byte counts
 * since the start, as decimal text: they pass 2^53.
 */
export interface RingStat {
  /** All before it is claimed. */
  claimedPosition: string
  /** All before it is committed or aborted. */
  committedPosition: string
  /** As the reader says, checked. */
  takenPosition: string
  /** All before it is released. As the reader says, checked. */
  readPosition: string
  /** Claimed and not yet released. */
  usedBytes: number
  /** Given up before the end of the memory, because the next record did not fit there. */
  gapBytes: number
  claims: number
  claimRetries: number
  fulls: number
  pads: number
  aborts: number
  wakeups: number
  poisoned: boolean
}

export interface Native {
  readonly abiVersion: number
  readonly errorCodes: readonly string[]
  setErrorClass(errorClass: typeof RingError): void
  readonly NativeRingWriter: {
    new (capacityBytes: number, hugePages: number, startPosition: bigint): NativeRingWriter
    new (ringId: bigint): NativeRingWriter
  }
  readonly NativeRingReader: new (descriptors: number[], found: BigUint64Array) => NativeRingReader
  readonly NativePeerWatch: new (socketFd: number, onExit: () => void) => NativePeerWatch
  sendDescriptors(socketFd: number, message: Uint8Array, descriptors: number[]): void
  connectUnix(
    path: string,
    hello: Uint8Array,
    timeoutMs: number,
  ): Promise<{ socketFd: number; reply: Uint8Array; descriptors: number[] }>
  peerCredentials(socketFd: number): { pid: number; uid: number; gid: number }
  gatherRows(
    target: ArrayBuffer,
    targetByteOffset: number,
    rowStrideBytes: number,
    rows: number,
    sources: readonly ArrayBuffer[],
    sourceIndex: Uint32Array,
    sourceByteOffset: Uint32Array,
    sourceByteLength: Uint32Array,
  ): void
  crc32Rows(
    source: Uint8Array,
    rowByteOffset: Uint32Array,
    rowByteLength: Uint32Array,
    crcs: Uint32Array,
    rows: number,
  ): void
  hardenProcess(): void
}

let loaded: Native | RingError | undefined

/** Loaded on first use, so that a program which only may use a ring can start anywhere. */
export function native(): Native {
  loaded ??= load()
  if (loaded instanceof RingError) throw loaded
  return loaded
}

/** Whether there can be a ring in this process, and if not why: batches travel by sockets then. */
export function ringSupport(): { supported: boolean; reason: string } {
  loaded ??= load()
  if (loaded instanceof RingError) return { supported: false, reason: loaded.message }
  return { supported: true, reason: '' }
}

function load(): Native | RingError {
  if (process.platform !== 'linux') {
    return unsupported(`the ring needs Linux, this is ${process.platform}`)
  }
  const addon = requireAddon()
  if (addon instanceof RingError) return addon
  if (addon.abiVersion !== RING_ABI_VERSION) {
    return new RingError(
      'RING_ABI_MISMATCH',
      `the addon has ring ABI ${addon.abiVersion}, this package ${RING_ABI_VERSION}: build it again`,
    )
  }
  addon.setErrorClass(RingError)
  return addon
}

function requireAddon(): Native | RingError {
  const require = createRequire(import.meta.url)
  const packageRoot = fileURLToPath(new URL('..', import.meta.url))
  try {
    return require('node-gyp-build')(packageRoot) as Native
  } catch (cause) {
    const [firstLine] = (cause as Error).message.split('\n')
    return unsupported(
      `no binary of the addon loads here (${firstLine}); with a C++20 compiler and CMake, ` +
        '`npm rebuild @fabric/shm-ring` builds one',
    )
  }
}

function unsupported(why: string): RingError {
  return new RingError('RING_PLATFORM_UNSUPPORTED', `${why}: batches travel by sockets instead`)
}

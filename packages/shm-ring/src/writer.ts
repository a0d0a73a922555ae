/** The broker's side of a ring: owns the memory, claims space in it and commits records. */
import { RingError } from './errors.js'
import { type NativeRingWriter, native, type RingStat } from './native.js'
import { HUGE_PAGES, type HugePages, RING_PAGES, type RingPages } from './pages.js'

const HEADER_BYTES = 64

/** As often as a ring is looked at whose consumer's wake-ups are noise. */
const SPACE_POLL_MS = 10

/** What the addon answers to a wait for space; the same numbers stand in writer_handle.cc. */
// 0: armed, the callback comes from the loop
const MOVED = 1
const USE_TIMER = 2

export interface RingWriterOptions {
  /** A power of two, at least 4 MiB. */
  capacityBytes: number
  hugePages?: HugePages
  /** A multiple of 64. Only tests start elsewhere than at 0. */
  startPosition?: bigint
}

export class RingWriter {
  readonly capacityBytes: number
  readonly pages: RingPages
  readonly pageSizeBytes: number
  readonly pagesReason: string
  readonly maxPayloadBytes: number
  /** Names the ring in messages about crashes. */
  readonly id: string
  /** The data region. Detached by close(). */
  readonly memory: ArrayBuffer
  readonly #native: NativeRingWriter
  #spaceTimer: NodeJS.Timeout | undefined
  #spaceNow: NodeJS.Immediate | undefined

  /** Throws RingError. Zeroes the memory, about 10 ms for each 64 MiB. */
  static create(options: RingWriterOptions): RingWriter {
    return new RingWriter(options)
  }

  private constructor(options: RingWriterOptions) {
    const hugePages = HUGE_PAGES.indexOf(options.hugePages ?? 'try')
    if (hugePages < 0) {
      throw new RingError(
        'RING_OPTION_INVALID',
        `hugePages must be one of ${HUGE_PAGES.join(', ')}`,
        'hugePages',
      )
    }
    checkCapacity(options.capacityBytes)
    this.#native = new (native().NativeRingWriter)(
      options.capacityBytes,
      hugePages,
      options.startPosition ?? 0n,
    )
    const about = this.#native.about()
    this.capacityBytes = options.capacityBytes
    this.pages = RING_PAGES[about.pages]!
    this.pageSizeBytes = about.pageSizeBytes
    this.pagesReason = about.pagesReason
    this.maxPayloadBytes = about.maxPayloadBytes
    this.id = about.ringId.toString(16).padStart(16, '0')
    this.memory = this.#native.memory()
  }

  /**
   * Space for one payload, to be filled through `memory` and then committed. null: the ring is
   * full, see onSpace(). Throws RingError for a payload over maxPayloadBytes, and for a ring that is
   * poisoned or closed.
   */
  claim(payloadBytes: number): RingClaim | null {
    const position = this.#native.claim(payloadBytes)
    if (position === null) return null
    const byteOffset = Number(position & BigInt(this.capacityBytes - 1)) + HEADER_BYTES
    return new RingClaim(this.#native, position, byteOffset, payloadBytes)
  }

  /**
   * After claim() returned null: calls back once, when the consumer has released something since
   * then or the ring turned out to be poisoned. A second call replaces the first.
   */
  onSpace(callback: () => void): void {
    this.#stopWaiting()
    const armed = this.#native.armSpace((wake) => {
      if (wake === USE_TIMER) this.#pollForSpace(callback)
      else callback()
    })
    if (armed === USE_TIMER) this.#pollForSpace(callback)
    if (armed === MOVED) this.#spaceNow = setImmediate(callback)
  }

  #pollForSpace(callback: () => void): void {
    this.#spaceTimer = setInterval(() => {
      if (!this.#native.spaceMoved()) return
      this.#stopWaiting()
      callback()
    }, SPACE_POLL_MS)
  }

  #stopWaiting(): void {
    clearInterval(this.#spaceTimer)
    clearImmediate(this.#spaceNow)
    this.#native.disarmSpace()
  }

  /** [data, wctl, rctl, data pipe's read end, space pipe's write end], for the consumer. */
  descriptors(): number[] {
    return this.#native.descriptors()
  }

  /** Once they were sent: closes the broker's copies of the pipe ends that the consumer now has. */
  closePeerDescriptors(): void {
    this.#native.closePeerDescriptors()
  }

  stat(): RingStat {
    return this.#native.stat()
  }

  /** Aborts open claims, detaches `memory`, gives everything back. Idempotent. */
  close(): void {
    this.#stopWaiting()
    this.#native.close()
  }
}

/** One record in the making. Commit or abort it soon: records after it stay invisible until then. */
export class RingClaim {
  readonly #native: NativeRingWriter
  readonly #position: bigint
  /** Of the payload, in the ring's `memory`. A multiple of 64. */
  readonly byteOffset: number
  readonly byteLength: number

  /** @internal */
  constructor(native: NativeRingWriter, position: bigint, byteOffset: number, byteLength: number) {
    this.#native = native
    this.#position = position
    this.byteOffset = byteOffset
    this.byteLength = byteLength
  }

  commit(batchSequence: number): void {
    this.#native.commit(this.#position, batchSequence)
  }

  /** The reader passes over the space as if nothing had been there. */
  abort(): void {
    this.#native.abort(this.#position)
  }

  /** Has the consumer taken this record and all before it? Keeps its answer after close(). */
  get taken(): boolean {
    return this.#native.taken(this.#position, this.byteLength)
  }
}

// The addon checks the value; this one says it in the ring's own terms for what is no whole number.
function checkCapacity(capacityBytes: number): void {
  if (Number.isSafeInteger(capacityBytes) && capacityBytes >= 0) return
  throw new RingError(
    'RING_CAPACITY_INVALID',
    `capacityBytes must be a power of two from 4 MiB to 16 GiB, not ${capacityBytes}`,
    'capacityBytes',
  )
}

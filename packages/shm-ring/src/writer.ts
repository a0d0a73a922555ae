/** The broker's side of a ring: owns the memory, claims space in it and commits records. */
import { RingError } from './errors.js'
import { type NativeRingWriter, native, type RingStat } from './native.js'
import { HUGE_PAGES, type HugePages, RING_PAGES, type RingPages } from './pages.js'
import { SpaceWait } from './space-wait.js'

const HEADER_BYTES = 64

export interface RingWriterOptions {
  /** A power of two, at least 4 MiB. */
  capacityBytes: number
  hugePages?: HugePages
  /** A multiple of 64. Only tests start elsewhere than at 0. */
  startPosition?: bigint
}

/** Names a ring of this process; goes to a worker by postMessage() or workerData. */
export interface RingHandle {
  readonly ringId: bigint
}

export interface ClaimOptions {
  /** How long to wait for space. Default: as long as it takes. */
  timeoutMs?: number
  /** Ends the wait with the signal's reason. */
  signal?: AbortSignal
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
  readonly #space: SpaceWait
  readonly #offsetMask: bigint

  /** Throws RingError. Zeroes the memory, about 10 ms for each 64 MiB. */
  static create(options: RingWriterOptions): RingWriter {
    const hugePages = HUGE_PAGES.indexOf(options.hugePages ?? 'try')
    if (hugePages < 0) {
      throw new RingError(
        'RING_OPTION_INVALID',
        `hugePages must be one of ${HUGE_PAGES.join(', ')}`,
        'hugePages',
      )
    }
    checkCapacity(options.capacityBytes)
    const { NativeRingWriter } = native()
    const start = options.startPosition ?? 0n
    return new RingWriter(new NativeRingWriter(options.capacityBytes, hugePages, start))
  }

  /**
   * One more writer of a ring of this process, on the calling thread: claims of all its writers may
   * be open at once. What this one has claimed is aborted when it closes or its worker ends.
   * Throws RingError RING_CLOSED once the ring's maker has closed it.
   */
  static open(handle: RingHandle): RingWriter {
    return new RingWriter(new (native().NativeRingWriter)(handle.ringId))
  }

  private constructor(ring: NativeRingWriter) {
    this.#native = ring
    this.#space = new SpaceWait(ring)
    const about = this.#native.about()
    this.capacityBytes = about.capacityBytes
    this.#offsetMask = BigInt(about.capacityBytes - 1)
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
    const byteOffset = Number(position & this.#offsetMask) + HEADER_BYTES
    return new RingClaim(this.#native, position, byteOffset, payloadBytes)
  }

  /**
   * Like claim(), but waits for space, and for whoever asked before. null: there was none within
   * `timeoutMs`. Rejects as claim() throws, and with the signal's reason when it is aborted.
   */
  claimAsync(payloadBytes: number, options: ClaimOptions = {}): Promise<RingClaim | null> {
    const { timeoutMs, signal } = options
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted()
      const atOnce = this.#space.queued ? null : this.claim(payloadBytes)
      if (atOnce !== null || timeoutMs === 0) return resolve(atOnce)
      const attempt = (): boolean => {
        try {
          const claim = this.claim(payloadBytes)
          if (claim === null) return false
          end()
          resolve(claim)
        } catch (error) {
          end()
          reject(error)
        }
        return true
      }
      const timer = timeoutMs === undefined ? undefined : setTimeout(giveUp, timeoutMs)
      const space = this.#space
      const onAbort = () => {
        end()
        space.leave(attempt)
        reject(signal?.reason)
      }
      function end(): void {
        clearTimeout(timer)
        signal?.removeEventListener('abort', onAbort)
      }
      function giveUp(): void {
        end()
        space.leave(attempt)
        resolve(null)
      }
      signal?.addEventListener('abort', onAbort)
      space.enqueue(attempt)
    })
  }

  /**
   * After claim() returned null: calls back once, when the consumer has released something since
   * then or the ring turned out to be poisoned. A second call replaces the first.
   */
  onSpace(callback: () => void): void {
    this.#space.once(callback)
  }

  /** For RingWriter.open() in a worker of this process. It does not keep the ring alive. */
  share(): RingHandle {
    return { ringId: this.#native.share() }
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

  /**
   * Aborts open claims and detaches `memory`. By the ring's maker it also ends the ring for all: no
   * writer can claim any more, and the memory goes when the last one has closed. Idempotent.
   */
  close(): void {
    this.#native.close()
    this.#space.close()
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

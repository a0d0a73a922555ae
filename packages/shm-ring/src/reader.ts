/** The consumer's side of a ring: reads committed records in place, in order. */
import { type NativeRingReader, native } from './native.js'
import { RING_PAGES, type RingPages } from './pages.js'

/** worker.terminate() is heard between two of these: no native call blocks longer. */
const WAIT_SLICE_MS = 50
/** A wait that is over sooner than a sleep and its wake-up would take should not sleep. */
const SPINS = 500

export class RingReader {
  readonly capacityBytes: number
  readonly pageSizeBytes: number
  readonly pages: RingPages
  /** The same as the writer's. */
  readonly id: string
  readonly #native: NativeRingReader
  /** [position, batch sequence] of the record that next() just found. */
  readonly #found = new BigUint64Array(2)
  #open = true

  /**
   * Maps a ring whose descriptors came from the broker. Owns them from the call on, also when it
   * throws RingError.
   */
  static attach(descriptors: number[]): RingReader {
    return new RingReader(descriptors)
  }

  private constructor(descriptors: number[]) {
    this.#native = new (native().NativeRingReader)(descriptors, this.#found)
    const about = this.#native.about()
    this.capacityBytes = about.capacityBytes
    this.pageSizeBytes = about.pageSizeBytes
    this.pages = RING_PAGES[about.pages]!
    this.id = about.ringId.toString(16).padStart(16, '0')
  }

  /**
   * The next committed record, or null: none now, and the next commit will wake onReadable(). In the
   * middle of a stream it looks on for up to 50 us before it says null, which spares both sides a
   * wake-up; where that finds nothing it is done ever more rarely, once in 64 calls in the end.
   */
  next(): RingRecord | null {
    const payload = this.#native.next()
    if (payload === null) return null
    return new RingRecord(this.#native, this.#found[0]!, Number(this.#found[1]), payload)
  }

  /**
   * Calls back whenever records may have arrived, the first time soon after this call. The callback
   * reads with next() until null: only then does another commit call it again.
   */
  onReadable(callback: () => void): void {
    this.#native.onReadable(callback)
    setImmediate(() => {
      if (this.#open) callback()
    })
  }

  /**
   * Blocks this thread until next() has something, or `timeoutMs` is over, or the writer is gone:
   * true only in the first case. Spins for a moment, then sleeps by futex; for a worker thread that
   * does nothing else, as no timer, message or onReadable() is served meanwhile.
   */
  waitSync(timeoutMs: number, { spins = SPINS }: { spins?: number } = {}): boolean {
    const deadline = performance.now() + timeoutMs
    let slice = Math.ceil(Math.min(Math.max(0, timeoutMs), WAIT_SLICE_MS))
    if (this.#native.waitSync(slice, spins)) return true
    for (;;) {
      // In this order: what was committed before the writer went is there to be found.
      const last = this.#native.ended() || performance.now() >= deadline
      slice = last ? 0 : Math.ceil(Math.min(deadline - performance.now(), WAIT_SLICE_MS))
      if (this.#native.waitSync(Math.max(0, slice), 0)) return true
      if (last) return false
    }
  }

  /** The writer has closed the ring or is gone. What it committed can still be read. */
  get ended(): boolean {
    return this.#native.ended()
  }

  /** Whether waiting for records keeps the process alive; after onReadable() it does. */
  ref(): void {
    this.#native.ref()
  }

  unref(): void {
    this.#native.unref()
  }

  /** Records handed out and not yet released. */
  get held(): number {
    return this.#native.held()
  }

  /** Detaches the payload of every held record, then unmaps. Idempotent. */
  close(): void {
    this.#open = false
    this.#native.close()
  }
}

export class RingRecord {
  readonly #native: NativeRingReader
  readonly #position: bigint
  #released = false
  readonly batchSequence: number
  /**
   * The bytes in place, read-only: a write ends the process with SIGSEGV. Its byteLength is 0 after
   * release(), and a plain index into a view of it then reads undefined.
   */
  readonly payload: ArrayBuffer

  /** @internal */
  constructor(
    native: NativeRingReader,
    position: bigint,
    batchSequence: number,
    payload: ArrayBuffer,
  ) {
    this.#native = native
    this.#position = position
    this.batchSequence = batchSequence
    this.payload = payload
  }

  /** Tells the broker that work on this record begins. Seen once all records before it are taken. */
  take(): void {
    if (!this.#released) this.#native.take(this.#position)
  }

  /** Detaches the payload and gives its space back. Idempotent. */
  release(): void {
    if (this.#released) return
    this.#released = true
    this.#native.release(this.#position)
  }

  get released(): boolean {
    return this.#released
  }
}

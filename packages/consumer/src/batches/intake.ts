// The batches that wait for the handler on one connection: in the ring, and those that came by the
// socket, because there is no ring or because they are too large for it. Hands them out in the
// broker's order. Nothing here is taken yet.
import { BATCH_HEADER_BYTES } from '@fabric/protocol'
import type { RingReader, RingRecord } from '@fabric/shm-ring'

/** Bytes of one batch, and how to give them back. */
export interface Incoming {
  readonly buffer: ArrayBuffer
  /** Says, in the ring, that work on it has begun. */
  take(): void
  /** Ends every view of it: a later use sees length 0. */
  release(): void
}

export class Intake {
  readonly #ring: RingReader | null
  readonly #fromSocket: { readonly sequence: number; readonly buffer: ArrayBuffer }[] = []
  #ringHead: RingRecord | null = null
  #held = 0
  #isOver = false

  /** @param onBatch called when there may be a batch, never from within another call */
  constructor(ring: RingReader | null, onBatch: () => void) {
    this.#ring = ring
    ring?.onReadable(onBatch)
  }

  get pageSizeBytes(): number | null {
    return this.#ring?.pageSizeBytes ?? null
  }

  push(buffer: ArrayBuffer): void {
    this.#fromSocket.push({ sequence: sequenceOf(buffer), buffer })
  }

  next(): Incoming | null {
    if (this.#isOver) return null
    this.#ringHead ??= this.#ring?.next() ?? null
    const socketHead = this.#fromSocket[0]
    const ringHead = this.#ringHead
    if (ringHead === null) return socketHead === undefined ? null : this.#nextFromSocket()
    if (socketHead !== undefined && socketHead.sequence < ringHead.batchSequence)
      return this.#nextFromSocket()
    this.#ringHead = null
    return this.#hold(ringHead)
  }

  /** The connection is gone: nothing more is handed out; the ring goes when the last batch does. */
  end(): void {
    this.#isOver = true
    this.#fromSocket.length = 0
    this.#closeWhenFree()
  }

  #nextFromSocket(): Incoming {
    const { buffer } = this.#fromSocket.shift() as { buffer: ArrayBuffer }
    return { buffer, take: () => {}, release: () => detach(buffer) }
  }

  #hold(record: RingRecord): Incoming {
    this.#held += 1
    return {
      buffer: record.payload,
      take: () => record.take(),
      release: () => {
        record.release()
        this.#held -= 1
        if (this.#isOver) this.#closeWhenFree()
      },
    }
  }

  #closeWhenFree(): void {
    if (this.#held === 0) this.#ring?.close()
  }
}

/** The batch's number, where its header has it; what is no batch is found out when it is opened. */
function sequenceOf(buffer: ArrayBuffer): number {
  if (buffer.byteLength < BATCH_HEADER_BYTES) return 0
  return Number(new DataView(buffer).getBigUint64(8, true))
}

/** A transfer is how JavaScript of this age lets go of a buffer; its copy dies at once. */
function detach(buffer: ArrayBuffer): void {
  structuredClone(buffer, { transfer: [buffer] })
}

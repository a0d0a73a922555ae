// Batches as records of the consumer's ring. What finds no room, or is larger than the ring takes,
// travels by the socket in the same order of dispatch, so that nothing decided ever waits here.
import { FabricError } from '@fabric/protocol'
import { RingError, type RingWriter } from '@fabric/shm-ring'
import type { BatchSpace, Channel, OnRoom, RingState } from './channel.js'
import type { SocketChannel } from './socket-channel.js'

export class RingChannel implements Channel {
  readonly transport = 'ring'
  viaSocket = 0
  #ringHasRoom = true
  #closed = false

  /** @param fallback its `onRoom` must be this channel's too. */
  constructor(
    readonly writer: RingWriter,
    readonly fallback: SocketChannel,
    readonly onRoom: OnRoom,
  ) {}

  get hasRoom(): boolean {
    return this.#ringHasRoom && this.fallback.hasRoom
  }

  claim(byteLength: number, batch: number): BatchSpace {
    const claim = this.#claimRecord(byteLength)
    if (claim === null) {
      this.viaSocket += 1
      return this.fallback.claim(byteLength)
    }
    return {
      memory: this.writer.memory,
      byteOffset: claim.byteOffset,
      commit: () => claim.commit(batch),
      abort: () => claim.abort(),
    }
  }

  ring(): RingState | null {
    if (this.#closed) return null
    const { id, capacityBytes, pages, pageSizeBytes, pagesReason } = this.writer
    const stat = this.writer.stat()
    return {
      id,
      capacityBytes,
      usedBytes: stat.usedBytes,
      pages,
      pageSizeBytes,
      pagesReason,
      positions: {
        claimed: stat.claimedPosition,
        committed: stat.committedPosition,
        taken: stat.takenPosition,
        read: stat.readPosition,
      },
      poisoned: stat.poisoned,
      tailGapBytes: stat.gapBytes,
      claims: stat.claims,
      claimRetries: stat.claimRetries,
      fulls: stat.fulls,
      pads: stat.pads,
      aborts: stat.aborts,
      wakeups: stat.wakeups,
    }
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.fallback.close()
    this.writer.close()
  }

  #claimRecord(byteLength: number) {
    if (byteLength > this.writer.maxPayloadBytes) return null
    try {
      const claim = this.writer.claim(byteLength)
      if (claim === null) this.#waitForSpace()
      return claim
    } catch (error) {
      if (!(error instanceof RingError)) throw error
      throw new FabricError('FABRIC_PROTOCOL', `the ring is lost: ${error.message}`, {
        cause: error,
      })
    }
  }

  #waitForSpace(): void {
    if (!this.#ringHasRoom) return
    this.#ringHasRoom = false
    this.writer.onSpace(() => {
      if (this.#closed) return
      this.#ringHasRoom = true
      this.onRoom()
    })
    this.onRoom()
  }
}

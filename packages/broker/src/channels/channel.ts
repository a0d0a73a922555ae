// What carries batches from the broker to one consumer. A ring channel and a socket channel behave
// alike; test/channels/conformance.test.ts runs against both. The bytes of a batch are the same.

/** Room for one batch, owned until it is committed or aborted. */
export interface BatchSpace {
  readonly memory: ArrayBuffer
  /** Where the batch starts: a multiple of 8. */
  readonly byteOffset: number
  /** The batch is whole: the consumer may see it. */
  commit(): void
  /** Gives the room back; the consumer sees nothing. */
  abort(): void
}

export interface RingState {
  readonly capacityBytes: number
  readonly usedBytes: number
  readonly pages: 'huge' | 'transparent' | 'base'
  readonly pageSizeBytes: number
  readonly pagesReason: string
  /** Counters since the ring was made. */
  readonly tailGapBytes: number
  readonly claimRetries: number
  readonly fulls: number
}

export interface Channel {
  readonly transport: 'ring' | 'socket'
  /** Whether a worst-case batch has room: part of a free place (scheduling.md, Words). */
  readonly hasRoom: boolean
  /** Batches that had to take the socket although there is a ring. */
  readonly viaSocket: number
  /**
   * Never fails for want of room: what does not fit is held in memory until the consumer reads on,
   * and the core, told by `onRoom`, dispatches nothing more meanwhile.
   * @throws FabricError FABRIC_PROTOCOL when the consumer broke the ring: it must be disconnected.
   */
  claim(byteLength: number, batch: number): BatchSpace
  ring(): RingState | null
  close(): void
}

/** `hasRoom` has changed. */
export type OnRoom = () => void

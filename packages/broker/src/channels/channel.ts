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
  /** As lines about crashes name it. */
  readonly id: string
  readonly capacityBytes: number
  readonly usedBytes: number
  readonly pages: 'huge' | 'transparent' | 'base'
  readonly pageSizeBytes: number
  readonly pagesReason: string
  /**
   * Bytes since the ring was made, as decimal text: they pass 2^53. All before `claimed` is claimed,
   * all before `committed` settled; `taken` and `read` are what the consumer says, checked.
   */
  readonly positions: {
    readonly claimed: string
    readonly committed: string
    readonly taken: string
    readonly read: string
  }
  /** The consumer wrote an impossible position: nothing more is claimed. */
  readonly poisoned: boolean
  /** Counters since the ring was made. */
  readonly tailGapBytes: number
  readonly claims: number
  readonly claimRetries: number
  readonly fulls: number
  readonly pads: number
  readonly aborts: number
  readonly wakeups: number
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

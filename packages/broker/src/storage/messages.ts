// What the caller's thread, the writing thread and the reading thread say to each other. Columns of items
// (columns.ts) stand in buffers that both threads see, which the writing thread gives back.
import type { ErrorCode } from '@fabric/protocol'
import type { LentBuffer } from './shared-buffers.js'
import type {
  DiskShape,
  LoadedItems,
  Recovery,
  StoredJob,
  StoreHealth,
  StoreProblem,
} from './store.js'

export interface StoreSettings {
  readonly dataDir: string
  /**
   * `relaxed`: an append is answered before it is written and synced, within syncIntervalMs. `never`: the
   * file is of this process alone: made anew at the start, removed at the end, and nothing is synced.
   */
  readonly sync: 'always' | 'relaxed' | 'never'
  readonly syncIntervalMs: number
  readonly maxKeptResultBytes: number
  /** Settlements that wait in memory while the disk fails. */
  readonly maxHeldResultBytes: number
  /** Below it appends are refused, so that what is there can still be settled and removed. */
  readonly diskReserveBytes: number
  /** How often a failing disk is tried. */
  readonly probeIntervalMs: number
  /** For tests: a segment takes no further append beyond it (segment-file.ts). */
  readonly segmentBytesMax?: number | undefined
  /** Test point below the store: the errno that a commit fails with (0: none), milliseconds it takes. */
  readonly faults: Int32Array | null
  /** exit-gate.ts; null: nobody exits while there are transactions. */
  readonly exitFlags: Int32Array | null
}

export interface AppendWrite {
  readonly kind: 'append'
  readonly acceptedAtMs: number
  /** Packed. */
  readonly items: LentBuffer
}

/** Settled items, packed (settled-columns.ts). */
export interface SettleWrite {
  readonly kind: 'settle'
  readonly count: number
  /** Of what is packed. */
  readonly bytes: number
  readonly items: LentBuffer
}

export type Write =
  | AppendWrite
  | SettleWrite
  | { readonly kind: 'putJob'; readonly job: StoredJob }
  | { readonly kind: 'deleteJob'; readonly number: number }
  | { readonly kind: 'resultsRead'; readonly job: number; readonly offset: number }
  /** Changes nothing: answered when all that came before it is committed. */
  | { readonly kind: 'commit' }
  | { readonly kind: 'setAside'; readonly table: 'blocks' | 'results'; readonly key: Uint8Array }
  | { readonly kind: 'lookup'; readonly items: LentBuffer }
  | { readonly kind: 'sequenceOf'; readonly job: number; readonly id: Uint8Array }
  | { readonly kind: 'close' }

export type Read =
  | {
      readonly kind: 'read'
      readonly job: number
      readonly shape: DiskShape
      readonly tokens: number
      readonly maxBytes: number
      /** Buffers of earlier reads that are not looked at any more. */
      readonly returned: readonly number[]
    }
  | { readonly kind: 'find'; readonly sequence: number; readonly job: number | null }
  | {
      readonly kind: 'countAhead'
      readonly job: number
      readonly shape: DiskShape
      readonly sequence: number
    }
  | { readonly kind: 'forget'; readonly job: number }
  | { readonly kind: 'forgetSegments'; readonly segments: readonly number[] }
  | {
      readonly kind: 'results'
      readonly job: number
      readonly offset: number
      readonly maxBytes: number
    }
  | { readonly kind: 'close' }

/** What was read, in a buffer that is to be returned; null: of this message alone. */
export interface LentItems {
  readonly items: LoadedItems
  readonly number: number | null
}

export interface Request<T> {
  readonly id: number
  readonly ask: T
}

export interface Failure {
  readonly code: ErrorCode
  readonly message: string
}

/** Of the jobs whose results changed. */
export interface ResultRange {
  readonly job: number
  readonly firstOffset: number
  readonly endOffset: number
}

export interface StoreSize {
  readonly fileBytes: number
  readonly usedBytes: number
}

export type FromWriter =
  | { readonly kind: 'opened'; readonly recovery: Recovery; readonly size: StoreSize }
  | { readonly kind: 'refused'; readonly failure: Failure }
  | { readonly kind: 'health'; readonly health: StoreHealth }
  | { readonly kind: 'problem'; readonly problem: StoreProblem }
  | {
      readonly kind: 'done'
      readonly answers: readonly {
        readonly id: number
        readonly value?: unknown
        readonly failure?: Failure
      }[]
      readonly ranges: readonly ResultRange[]
      readonly size: StoreSize
      /** Buffers of packed items that have been read. */
      readonly buffers: readonly number[]
      /** Segments of the log whose files are gone. */
      readonly removed: readonly number[]
    }

export type FromReader =
  | { readonly kind: 'opened' }
  | { readonly kind: 'refused'; readonly failure: Failure }
  | { readonly kind: 'damaged'; readonly table: 'blocks' | 'results'; readonly key: Uint8Array }
  | {
      readonly kind: 'answer'
      readonly id: number
      readonly value?: unknown
      readonly failure?: Failure
    }

// All that the core remembers between two steps, and nothing else.
//
// The files beside this one are functions on it, one rule or two each. They may assume that `now` is
// the time of the running step and that whatever they push to `effects` is that step's answer.

import type { Consumer } from './consumers.js'
import type { ContractClass } from './contracts.js'
import type { CoreConfig } from './core-config.js'
import type { Tier } from './core-counts.js'
import { DiskDeadlines } from './disk-deadline-table.js'
import type { Effect, GateReason, QuarantinedItem, SettledStatus } from './effects.js'
import { GroupTable } from './group-table.js'
import { IdHash } from './hash.js'
import { IdBlocks } from './id-blocks.js'
import { Items } from './items.js'
import type { Job } from './jobs.js'
import { LeaseTable } from './lease-table.js'
import { LengthClasses } from './length-classes.js'
import { LookAhead } from './look-ahead.js'
import { MixedQueue } from './mixed-queue.js'
import type { Model, Shape } from './models.js'
import type { OwnWait } from './own-waits.js'
import type { NewList } from './shape-queue.js'
import { TIMER_DISK_DEADLINE, TIMER_GATE, TIMER_LATE, Timers } from './timers.js'

export const NS_PER_MS = 1_000_000

interface AdmittedId {
  readonly high: number
  readonly low: number
  readonly body: number
}

export interface Tally {
  items: number
  tokens: number
}

const tally = (): Tally => ({ items: 0, tokens: 0 })

export class State {
  now = 0
  effects: Effect[] = []

  readonly items: Items
  readonly lengthClasses: LengthClasses
  readonly newMixedList: NewList = () =>
    new MixedQueue(this.lengthClasses, this.config.overtakeLimit)
  readonly timers = new Timers()
  readonly idHash: IdHash
  readonly idBlocks = new IdBlocks()
  readonly lookAhead = new LookAhead()
  readonly models = new Map<number, Model>()
  /** By row; items name their shape by it. */
  readonly shapes: (Shape | null)[] = []
  readonly freeShapeRows: number[] = []
  readonly jobs = new Map<number, Job>()
  /** By row; items name their job by it. */
  readonly jobRows: (Job | null)[] = []
  readonly freeJobRows: number[] = []
  readonly consumers = new Map<number, Consumer>()
  readonly consumerRows: (Consumer | null)[] = []
  readonly freeConsumerRows: number[] = []
  /** Classes with a member that has a free place: the only ones a dispatch step looks at. */
  readonly freeClasses: ContractClass[] = []
  readonly touchedModels: Model[] = []
  readonly leases = new LeaseTable()
  readonly groups = new GroupTable()
  /** By item number, oldest first (S27). */
  readonly quarantine = { entries: new Map<number, QuarantinedItem>(), dropped: 0 }
  readonly modelsInCleanup: Model[] = []
  /** Grows with each wait of a consumer for its turn (S11). */
  lastWaitStamp = 0

  /** Timers of items with a deadline, by slot (S35). */
  readonly deadlines = new Map<number, number>()
  /** Of items on disk, which have no slot. */
  readonly diskDeadlines: DiskDeadlines
  /** Their time has come in this tick. */
  readonly pastDeadline: number[] = []

  /** Deliveries in suspect groups, by slot: only items that were under suspicion have any (S27). */
  readonly excused = new Map<number, number>()
  /** Items with a wait of their own, by slot (S16). */
  readonly ownWaits = new Map<number, OwnWait>()
  /** Shapes to be looked at before anyone asks what is due. */
  readonly dueNoted: Shape[] = []

  /** Settled in this step: rows are freed by the next, the shell still reads them. */
  readonly endedItems: number[] = []
  readonly deletedJobs: Job[] = []
  readonly touchedJobs: Job[] = []

  readonly tiers: Record<Tier, Tally> = {
    staging: tally(),
    lane: tally(),
    disk: tally(),
    reclaimed: tally(),
    retrying: tally(),
    held: tally(),
  }
  /** All tiers together: what the limits bound (S34). */
  readonly waiting = tally()
  /** Length of the item for which the last submission was refused for room, or 0 (S13b). */
  refusedLength = 0
  /** The part that counts for the gate: models with a consumer (S6, S7). */
  readonly served = { queueTokens: 0, queueItems: 0, waitingItems: 0, openItems: 0 }
  /** Admitted and not yet durable: they need room as if they waited. */
  readonly reserved = tally()
  /**
   * Memory mode: what is on disk is what memory had no room for. It is younger than the lanes, which go
   * first, and its ids are known here, as those of all other items.
   */
  readonly isDiskASpill: boolean
  /** Of admitted items of a spill, by number: known when the disk has them (S36). */
  readonly admittedIds = new Map<number, AdmittedId>()
  /** Rows of the disk tier in memory, and tokens that loads under way will add. */
  readonly window = tally()
  tokensLoading = 0
  /** Greatest number whose durability was told, and those that were read back before that. */
  lastStored = 0
  readonly early = new Set<number>()
  /** Of admitted items with a wait of their own, by number, ms. */
  readonly admittedWaits = new Map<number, number>()
  leasedItems = 0
  acceptedItems = 0
  readonly settled: Record<SettledStatus, number> = {
    completed: 0,
    failed: 0,
    expired: 0,
    cancelled: 0,
    quarantined: 0,
  }
  lanesActive = 0
  reclaimedItems = 0
  lateResults = 0
  aloneBatches = 0
  outOfMemoryBatches = 0
  readonly cleanupTotals = { entries: 0, ns: 0, batches: 0, items: 0 }

  readonly gate: {
    open: boolean
    reason: GateReason | null
    heldNs: number
    refusedForRoom: boolean
    /** Sum over members of tokens x (channelDepth + 1). */
    contractTokens: number
    readonly timer: number
  }
  readonly lateTimer: number

  /** Items and tokens dispatched in this window and the one before: the rate of S34's answer. */
  readonly drain = { windowAt: 0, items: 0, tokens: 0, lastItems: 0, lastTokens: 0 }

  constructor(readonly config: CoreConfig) {
    this.isDiskASpill = config.mode === 'memory'
    this.lengthClasses = new LengthClasses(config.roundTo, config.lengthClasses)
    this.items = new Items(config.lengthsOnly, config.segmentBytes)
    this.idHash = new IdHash(config.hashSeed)
    this.lateTimer = this.timers.open(TIMER_LATE, 0)
    this.diskDeadlines = new DiskDeadlines(this.timers.open(TIMER_DISK_DEADLINE, 0))
    this.gate = {
      open: false,
      reason: null,
      heldNs: 0,
      refusedForRoom: false,
      contractTokens: 0,
      timer: this.timers.open(TIMER_GATE, 0),
    }
  }
}

/** Has S29 looked at again when the next dispatch step finds nothing to do. */
export function touch(state: State, model: Model): void {
  if (model.touched) return
  model.touched = true
  state.touchedModels.push(model)
}

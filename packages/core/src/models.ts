// A model's share of the state: its shapes, its contract classes, its input and its cleanup.
//
// A shape is a length class of a model; its key (length-classes.ts) is in order of length. Staging and
// lane are one queue with a flag: an activated shape keeps its items in their order, whatever their
// number (S1, S2).

import type { Consumer } from './consumers.js'
import type { ContractClass } from './contracts.js'
import type { DiskPart } from './disk.js'
import type { Group } from './group-table.js'
import type { Items } from './items.js'
import { OrderedSet } from './ordered-set.js'
import { Queue } from './queue.js'
import { type ReadyAtList, ReadyAtLists } from './ready-at.js'
import { ServiceOrder } from './service-order.js'
import { ShapeDue } from './shape-due.js'
import { type NewList, ShapeQueue } from './shape-queue.js'
import { ShapesByKey } from './shapes-by-key.js'

// Most shapes are never due, never have reclaimed items nor any on disk: what they would need for it
// comes with the first, so that tens of thousands of lanes stay small. These four never change.
const NONE_RECLAIMED = new Queue()
const NONE_READ = new ShapeQueue(1, null)
const NO_PARTS: Map<number, DiskPart> = new Map()
const NOT_DUE = new ShapeDue()

/**
 * A shape is the queue of its items in staging or lane, and what else is known of it. One object, and what
 * an arrival and a batch read at its beginning: among tens of thousands of lanes each further object is
 * another cache miss.
 */
export class Shape extends ShapeQueue {
  /** Items that are not settled, leased ones too: the shape lives while it has any. */
  items = 0
  /** A lane when true, else staging. */
  active = false
  /** When it is ready, per class of the model, and the version of the classes it was made for. */
  readyAt: ReadyAtList = []
  readyAtVersion = -1
  /** Whether it is due (S16). To read, as are the next; `ownDue`, `ownReclaimed`, `ownWindow` and `ownParts`
   *  are for who changes them. */
  due = NOT_DUE
  reclaimed = NONE_RECLAIMED
  /** Items read ahead from disk, and the bytes of them all. */
  window = NONE_READ
  windowBytes = 0
  /** By job row: acceptance of the youngest item read, where that tells anything (own-waits.ts). */
  youngestRead: Map<number, number> | null = null
  /** What of it is on disk and may be read, and by whom: the part to read next comes first. */
  onDiskItems = 0
  onDiskTokens = 0
  parts = NO_PARTS
  /** Loads of its parts that the shell has not answered. */
  loads = 0
  /** Neighbours among the model's shapes with items in staging or lane; null without items there. */
  shorter: Shape | null = null
  longer: Shape | null = null
  /** Batches of the model when the queue last began, or a batch last took some of it (S13a). */
  servedAt = 0
  /** The last round of looking at spans that has looked at this shape's (S13a). */
  spanRound = -1
  /** Timer of S3, or -1. */
  idleTimer = -1

  constructor(
    readonly row: number,
    readonly model: Model,
    readonly key: number,
    paddedLength: number,
    newMixedList: NewList | null,
  ) {
    super(paddedLength, newMixedList)
  }

  /** Staging or lane. */
  get queue(): ShapeQueue {
    return this
  }

  /** Only reads what another item will read. */
  peek(items: Items): number {
    const last = this.tail < 0 ? 0 : items.next.get(this.tail)
    return last ^ this.row ^ this.items
  }

  ownDue(): ShapeDue {
    if (this.due === NOT_DUE) this.due = new ShapeDue()
    return this.due
  }

  /** Lanes by the thousands are due now and then: what says nothing any more is given up. */
  dropIdleDue(): void {
    if (this.due !== NOT_DUE && this.due.isIdle) this.due = NOT_DUE
  }

  ownReclaimed(): Queue {
    if (this.reclaimed === NONE_RECLAIMED) this.reclaimed = new Queue()
    return this.reclaimed
  }

  ownWindow(): ShapeQueue {
    if (this.window === NONE_READ)
      this.window = new ShapeQueue(this.paddedLength, this.newMixedList)
    return this.window
  }

  ownParts(): Map<number, DiskPart> {
    if (this.parts === NO_PARTS) this.parts = new Map()
    return this.parts
  }
}

export class Cleanup {
  active = false
  beganAt = 0
  batches = 0
  items = 0
  /** Since when S29's conditions hold without a break, or -1. */
  idleSince = -1
  timer = -1
}

export class Model {
  readonly shapes = new ShapesByKey()
  /** Keys of shapes with items in staging or lane. */
  readonly queued = new OrderedSet()
  /** Keys of shapes with reclaimed items (S25). */
  readonly reclaimed = new OrderedSet()
  /** Groups that wait, oldest first (S27, S28). */
  readonly groups: Group[] = []
  /** Those of them that are under suspicion. */
  suspectGroups = 0
  /** Finishes what it holds, to take a suspect group then, or null (S27). */
  kept: Consumer | null = null
  /** Consumers that hold a suspect group, and nothing else. */
  readonly suspectHolders: Consumer[] = []
  readonly classes: ContractClass[] = []
  /** Grows when classes come or go; shapes keep `readyAt` for one version. */
  classesVersion = 0
  /** Shapes that are ready at the same counts share a list of it: an arrival finds it in the cache. */
  readonly readyAtLists = new ReadyAtLists()
  /** Registered consumers that are not draining, in order of registration. */
  readonly members: Consumer[] = []
  /** Members that count for S29, with a batch in their channel / with nothing in flight. */
  counted = 0
  countedBusyChannels = 0
  countedIdle = 0
  /** Places of all members (S11). */
  places = 0
  /** The longest shape that some member holds, and the greatest budget (S5). */
  longestHeldKey = 0
  mostTokens = 0
  inputLengthsDiffer = false

  /** Staging and lane. */
  queueItems = 0
  queueTokens = 0
  /** Keys of shapes with items of the disk tier. */
  readonly onDisk = new OrderedSet()
  diskItems = 0
  queuePaddedTokens = 0
  /** All tiers. */
  waitingItems = 0
  waitingTokens = 0
  /** Waiting items of jobs that may still get more: 0 = the model's input has ended (S29). */
  openItems = 0
  lanesActive = 0

  /** Batches that left, and rows of shapes with items by the batch that last took some (S16). */
  batches = 0
  readonly lastServed = new ServiceOrder()
  /** Shapes that are due by a time of their own: the gate opens for them (S10). */
  opensGate = 0
  /** Key of the lane served last by a normal batch (S13). */
  cursor = 0
  /** The last batch was an over-budget item, so a normal one goes first now (S5). */
  aloneServedLast = false
  /** Counts the rounds of looking at spans (S13a). */
  spanRounds = 0
  readonly cleanup = new Cleanup()
  /** In the list of models that the next idle dispatch step looks at (S29). */
  touched = false
  firstDispatchAt = -1
  inputEndedAt = -1

  constructor(readonly id: number) {}

  /** Items that wait for a batch of their own making: staging, lanes, disk. */
  get freshItems(): number {
    return this.queueItems + this.diskItems
  }

  get served(): boolean {
    return this.members.length > 0
  }

  get inputEnded(): boolean {
    return this.openItems === 0
  }
}

// Packing: which items go into a batch, and what closed it (S12, S17, S19, S21, S31).
//
// The first item is always taken: an item over the budget goes alone (S5). After it, nothing enters
// that would break the contract, so no caller checks a batch again (I2).

import type { ContractClass } from './contracts.js'
import { takeFromWindow } from './disk.js'
import { dueByJob, dueHead, isFullFor } from './due.js'
import type { ClosedBy, Source } from './effects.js'
import { ITEM_WINDOW } from './items.js'
import { queueChanged } from './lanes.js'
import { roundUp } from './length-classes.js'
import type { Model, Shape } from './models.js'
import { leaveDueQueue } from './own-waits.js'
import type { Choice } from './ready.js'
import type { ShapeQueue } from './shape-queue.js'
import { noteServed } from './starvation.js'
import type { State } from './state.js'
import { withdraw, withdrawReclaimed } from './waiting.js'

/** What the batch format spends on an item beside its tokens, id and payload: an upper bound. */
export const ITEM_OVERHEAD_BYTES = 64
const TOKEN_BYTES = 4

export class Packing {
  readonly slots: number[] = []
  readonly sources: Record<Source, number> = {
    reclaimed: 0,
    due: 0,
    disk: 0,
    lane: 0,
    staging: 0,
  }
  source: Source | null = null
  longest = 0
  actualTokens = 0
  /** Its first item is over the budget: one, whatever its size (S5). */
  private alone = false
  private fixedBytes = 0
  private refusedBy: ClosedBy | null = null

  constructor(
    private readonly state: State,
    private readonly cls: ContractClass,
  ) {}

  get paddedLength(): number {
    return roundUp(this.longest, this.cls.contract.roundTo)
  }

  /** What counts for the fill (S22). */
  get budgetTokens(): number {
    return this.cls.budget.tokensOf(this.slots.length, this.longest, this.actualTokens)
  }

  get isClosed(): boolean {
    return this.refusedBy !== null
  }

  /** Takes the item unless the batch is closed by it. */
  add(slot: number, source: Source): boolean {
    const { items } = this.state
    const length = items.length.get(slot)
    const bytes = items.idBytes.get(slot) + items.payloadBytes.get(slot) + ITEM_OVERHEAD_BYTES
    if (this.slots.length === 0) this.alone = !this.cls.budget.allows(1, length, length)
    else this.refusedBy = this.refuses(length, bytes)
    if (this.isClosed) return false
    this.slots.push(slot)
    this.longest = Math.max(length, this.longest)
    this.actualTokens += length
    this.fixedBytes += bytes
    this.source ??= source
    this.sources[source]++
    return true
  }

  /** About how many items of the shape find room still. */
  roomFor({ key }: Shape): number {
    return this.cls.fullCount(key) - this.slots.length
  }

  closedBy(): ClosedBy {
    const { budget, contract } = this.cls
    const size = this.slots.length
    const { paddedLength } = this
    if (this.alone) return 'alone'
    const hasRoom = budget.allows(size + 1, paddedLength, this.actualTokens + paddedLength)
    if (!hasRoom || this.refusedBy === 'token_limit') return 'token_limit'
    if (size >= contract.batchSize) return 'item_limit'
    return this.refusedBy ?? 'lane_empty'
  }

  private refuses(length: number, bytes: number): ClosedBy | null {
    const { batchSize, roundTo, layout } = this.cls.contract
    const size = this.slots.length + 1
    const longest = Math.max(length, this.longest)
    const tokens = this.actualTokens + length
    if (this.alone) return 'alone'
    if (!this.cls.budget.allows(size, longest, tokens)) return 'token_limit'
    if (size > batchSize) return 'item_limit'
    const sent = layout === 'padded' ? size * roundUp(longest, roundTo) : tokens
    const total = sent * TOKEN_BYTES + this.fixedBytes + bytes
    return total > this.state.config.maxBatchBytes ? 'byte_limit' : null
  }
}

/** Takes a batch out of the queues. The items in it stand nowhere until they are leased. */
export function pack(state: State, cls: ContractClass, choice: Choice): Packing {
  const { model } = cls
  const shape = model.shapes.get(choice.key)!
  const packing = new Packing(state, cls)
  takeReclaimed(state, packing, shape)
  const isDue = cls.due.has(shape.row)
  const isHeldBack = isDue && !isFullFor(cls, shape)
  const queueFirst = isQueueFirst(state, shape)
  if (isDue) takeDue(state, packing, shape, isHeldBack)
  takeFresh(state, packing, shape, isHeldBack, queueFirst)
  if (choice.work === 'due') fillUp(state, packing, shape)
  if (choice.work === 'cleanup' && state.config.cleanupMerge) takeShorter(state, packing, shape)
  if (choice.isSpan === true) completeSpan(state, packing, shape)
  return packing
}

function takeReclaimed(state: State, packing: Packing, shape: Shape): void {
  const { reclaimed } = shape
  while (reclaimed.count > 0 && packing.add(reclaimed.head, 'reclaimed')) {
    withdrawReclaimed(state, reclaimed.head)
  }
}

/**
 * Items whose own wait is over, by due time, and the oldest one of a shape that is held back or was passed
 * over (S16). They leave out of their jobs' turns: what is behind them in the batch follows the turns.
 */
function takeDue(state: State, packing: Packing, shape: Shape, isHeldBack: boolean): void {
  const { own, ownAt, isStarved, firstStarvedAt } = shape.due
  const head = isHeldBack || isStarved ? dueHead(state, shape) : -1
  const isHeadPlain = head >= 0 && own?.has(head) !== true
  const headAt = isHeadPlain ? Math.min(dueByJob(state, head), firstStarvedAt) : ownAt
  if (isHeadPlain && headAt < ownAt) takeOneDue(state, packing, shape, head)
  while (own !== null && own.first >= 0 && takeOneDue(state, packing, shape, own.first));
  if (isHeadPlain && headAt >= ownAt) takeOneDue(state, packing, shape, head)
}

function takeOneDue(state: State, packing: Packing, shape: Shape, slot: number): boolean {
  if (packing.isClosed || !packing.add(slot, 'due')) return false
  noteServed(state, shape, state.items.state.get(slot) === ITEM_WINDOW ? 'disk' : 'queue')
  withdraw(state, slot)
  return true
}

/** The least part of a batch's padded length that a filler has (S16). */
const FILLER_LENGTH = 0.8

/** Shorter shapes use what is left of a due batch, where that pads them by little. */
function fillUp(state: State, packing: Packing, longest: Shape): void {
  const { model } = longest
  let key = nextShorter(model, longest.key)
  while (key >= 0 && !packing.isClosed) {
    const shape = model.shapes.get(key)!
    if (shape.paddedLength < FILLER_LENGTH * packing.paddedLength) return
    takeFresh(state, packing, shape)
    key = nextShorter(model, key)
  }
}

/**
 * The disk tier goes before staging and lane (S12), but for a spill, which is younger; and where one of
 * the two was passed over for long, that one goes first (I7).
 */
function isQueueFirst(state: State, { due: { starvedAt } }: Shape): boolean {
  return starvedAt.queue === starvedAt.disk ? state.isDiskASpill : starvedAt.queue < starvedAt.disk
}

function takeFresh(
  state: State,
  packing: Packing,
  shape: Shape,
  isHeldBack = false,
  queueFirst = isQueueFirst(state, shape),
): void {
  if (queueFirst) takeQueued(state, packing, shape, isHeldBack)
  takeWindow(state, packing, shape, isHeldBack)
  if (!queueFirst) takeQueued(state, packing, shape, isHeldBack)
}

function takeWindow(state: State, packing: Packing, shape: Shape, isHeldBack: boolean): void {
  const { window } = shape
  const { count } = window
  while (window.count > 0 && !packing.isClosed) {
    const slot = nextOf(state, packing, shape, window)
    const source = isHeldBack && isPastDue(state, slot) ? 'due' : 'disk'
    if (packing.add(slot, source)) takeFromWindow(state, shape, slot)
  }
  if (window.count !== count) noteServed(state, shape, 'disk')
}

function isPastDue(state: State, slot: number): boolean {
  return dueByJob(state, slot) <= state.now
}

function takeQueued(state: State, packing: Packing, shape: Shape, isHeldBack = false): void {
  const { queue } = shape
  const { count, tokens } = queue
  const tier = shape.active ? 'lane' : 'staging'
  state.lookAhead.lookAtQueue(state, queue, packing.roomFor(shape))
  while (queue.count > 0 && !packing.isClosed) {
    const slot = nextOf(state, packing, shape, queue)
    const source = isHeldBack && isPastDue(state, slot) ? 'due' : tier
    if (!packing.add(slot, source)) break
    leaveDueQueue(state, shape, slot)
    queue.take(state.items, slot)
  }
  if (queue.count === count) return
  noteServed(state, shape, 'queue')
  shape.servedAt = shape.model.batches + 1
  queueChanged(state, shape, count, tokens)
}

/** Like with like: the first item is the oldest, in cleanup the longest, the others go best with it. */
function nextOf(state: State, packing: Packing, shape: Shape, queue: ShapeQueue): number {
  if (packing.longest > 0)
    return queue.headFor(state.items, state.lengthClasses.paddedKey(packing.longest))
  return shape.model.cleanup.active ? queue.headFor(state.items, shape.key) : queue.head
}

/** The next shorter shape with items of its own: staged, in a lane or on disk. */
export function nextShorter(model: Model, key: number): number {
  return Math.max(model.queued.previous(key - 1), model.onDisk.previous(key - 1))
}

/** The next shorter shapes, staged or lanes: a span counts nothing that is on disk (S13a). */
function completeSpan(state: State, packing: Packing, longest: Shape): void {
  const { queued, shapes } = longest.model
  let key = queued.previous(longest.key - 1)
  while (key >= 0 && !packing.isClosed) {
    takeQueued(state, packing, shapes.get(key)!)
    key = queued.previous(key - 1)
  }
}

/** Longest first, so that what is padded is padded by the least (S31). */
function takeShorter(state: State, packing: Packing, longest: Shape): void {
  const { model } = longest
  let key = nextShorter(model, longest.key)
  while (key >= 0 && !packing.isClosed) {
    takeFresh(state, packing, model.shapes.get(key)!)
    key = nextShorter(model, key)
  }
}

// What is ready for a contract class: reclaimed work, due shapes, over-budget items, lanes, spans, the
// tail (S4, S5, S12, S13, S13b, S15, S16, S30).
//
// Questions only; nothing here changes the state. Each answer is a handful of look-ups in ordered
// sets, whatever the number of lanes, items or consumers (S14).

import type { Consumer } from './consumers.js'
import type { ContractClass } from './contracts.js'
import { isFullFor } from './due.js'
import type { Heap } from './heap.js'
import { isProducerWaiting } from './limits.js'
import type { Model } from './models.js'
import type { OrderedSet } from './ordered-set.js'
import { MOST_NEED, type Need, NO_NEED } from './spans.js'
import type { State } from './state.js'

export type Work = 'reclaimed' | 'due' | 'alone' | 'disk' | 'lane' | 'cleanup'

/** The two tiers of new work: each class knows what is ready of either. */
type Fresh = 'disk' | 'lane'

const DISK_FIRST = ['disk', 'lane'] as const
const LANES_FIRST = ['lane', 'disk'] as const

/** Where another class must find a shape that it is to be served instead. */
type Place = Fresh | 'due'

export interface Choice {
  readonly work: Work
  /** Key of the shape to begin with. */
  readonly key: number
  /** The next shorter shapes complete the batch (S13a). */
  readonly isSpan?: boolean
  /** A due shape that is full anyway (S16). */
  readonly isFull?: boolean
  /** By affinity the consumer stays at its lane (S15). */
  readonly kept?: boolean
}

/**
 * The work to do next for this class, in the order of S12, or null. `consumer` is the member that
 * would get it; whether there is work does not depend on it, but on how much it needs some.
 */
export function choose(
  state: State,
  cls: ContractClass,
  lanesAllowed: boolean,
  consumer: Consumer | null,
  need: Need,
): Choice | null {
  const { model } = cls
  const reclaimed = reclaimedFor(state, cls)
  if (reclaimed >= 0) return { work: 'reclaimed', key: reclaimed }
  const alone = overBudget(cls)
  const fresh = dueWork(state, cls) ?? (lanesAllowed ? freshWork(state, cls, consumer, need) : null)
  // Over-budget items and lanes take turns: neither may block the other (S5).
  if (alone >= 0 && (fresh === null || !model.aloneServedLast)) return { work: 'alone', key: alone }
  if (fresh !== null) return fresh
  const tail = model.cleanup.active ? tailFor(state, cls) : -1
  return tail < 0 ? null : { work: 'cleanup', key: tail }
}

/** The shape that was due first, of those that the class holds (S16). */
function dueWork(state: State, cls: ContractClass): Choice | null {
  const row = cls.due.top()
  if (row < 0) return null
  const shape = state.shapes[row]!
  if (isBetterElsewhere(state, cls, shape.key, 'due')) return null
  return { work: 'due', key: shape.key, isFull: isFullFor(cls, shape) }
}

/**
 * The disk tier goes before the lanes (S12), but for a spill, which is younger than they are; what is
 * full alone goes before spans (S13b).
 */
function freshWork(
  state: State,
  cls: ContractClass,
  consumer: Consumer | null,
  need: Need,
): Choice | null {
  const [first, second] = state.isDiskASpill ? LANES_FIRST : DISK_FIRST
  const plain = freshOf(state, cls, consumer, first) ?? freshOf(state, cls, consumer, second)
  if (plain !== null) return plain
  const key = spanFor(state, cls, need)
  return key < 0 ? null : { work: 'lane', key, isSpan: true }
}

function freshOf(
  state: State,
  cls: ContractClass,
  consumer: Consumer | null,
  work: Fresh,
): Choice | null {
  if (readyOf(cls, work).isEmpty()) return null
  const kept = consumer === null ? -1 : keptLane(state, consumer, work)
  const key = kept < 0 ? laneFor(state, cls, work) : kept
  return key < 0 ? null : { work, key, kept: kept >= 0 }
}

function readyOf(cls: ContractClass, work: Fresh): OrderedSet {
  return work === 'disk' ? cls.readyOnDisk : cls.ready
}

function overBudget(cls: ContractClass): number {
  const onDisk = overBudgetFor(cls, cls.model.onDisk)
  return onDisk >= 0 ? onDisk : overBudgetFor(cls, cls.model.queued)
}

/**
 * The longest shape of either tier: a cleanup batch mixes them. While more may come it is no tail that is
 * packed, but a batch for an idle consumer: then a full one that pads little, if there is one.
 */
function tailFor(state: State, cls: ContractClass): number {
  const { inputEnded, onDisk, queued } = cls.model
  const span = inputEnded || !state.config.cleanupMerge ? -1 : (cls.spans?.leastPadded() ?? -1)
  if (span >= 0 && !isBetterElsewhere(state, cls, span, null)) return span
  return Math.max(longestFor(state, cls, onDisk), longestFor(state, cls, queued))
}

/** Members that may get a batch now, in the order of service (S11). */
export function inLine(cls: ContractClass): Heap {
  return isTail(cls) ? cls.freeAndEmpty : cls.free
}

/**
 * Fewer full batches than places, and no more to come, or cleanup: a channel takes one at most, so
 * that the tail spreads over all GPUs (S11).
 */
export function isTail(cls: ContractClass): boolean {
  const { cleanup, inputEnded, places } = cls.model
  return cleanup.active || (inputEnded && cls.fullBatchesLeft() < places)
}

function reclaimedFor(state: State, cls: ContractClass): number {
  const { reclaimed } = cls.model
  if (reclaimed.isEmpty()) return -1
  const held = longestFor(state, cls, reclaimed)
  return held >= 0 ? held : overBudgetFor(cls, reclaimed)
}

/** Items that no consumer of the model holds, for one with the greatest budget (S5). */
function overBudgetFor(cls: ContractClass, set: OrderedSet): number {
  if (cls.contract.tokens !== cls.model.mostTokens) return -1
  return set.next(cls.model.longestHeldKey + 1)
}

function laneFor(state: State, cls: ContractClass, work: Fresh): number {
  const { model, inputKey } = cls
  const ready = readyOf(cls, work)
  const key = nextInRound(ready, model.cursor)
  if (key < 0 || !isBetterElsewhere(state, cls, key, work)) return key
  // Nothing between the cursor and this one is ready: what it takes whole comes from the shortest on.
  const shortest = ready.next(0)
  return shortest <= inputKey ? shortest : -1
}

/**
 * The best span, where this need allows it or the queue is at its limit (S13b). Not in turn as lanes are:
 * of two spans the one that pads less is better now, and the other gets more to choose from.
 */
function spanFor(state: State, cls: ContractClass, need: Need): number {
  const { spans } = cls
  if (spans === null) return -1
  const key = isProducerWaiting(state) ? spans.leastPadded() : spans.readyFor(spanNeed(cls, need))
  return key >= 0 && isBetterElsewhere(state, cls, key, 'lane') ? -1 : key
}

/**
 * When the input has ended nothing better comes, and cleanup packs what is left with the least padding
 * there is: until it may begin, only a consumer that has nothing at all gets a span.
 */
function spanNeed({ model }: ContractClass, need: Need): Need {
  return model.inputEnded && need < MOST_NEED ? NO_NEED : need
}

/** What a member's channel and flight say of its need of work (S13b). */
export function needOf({ channel, inFlight }: Consumer): Need {
  if (channel.length > 0) return 0
  return inFlight.length > 0 ? 1 : 2
}

/** The lane that affinity keeps the consumer at, or -1 (S15). */
function keptLane(state: State, { cls, lane, laneRun }: Consumer, work: Fresh): number {
  const { laneOrder, affinityRun } = state.config
  if (laneOrder !== 'affinity' || lane < 0 || laneRun >= affinityRun) return -1
  const isReady = readyOf(cls, work).has(lane)
  return isReady && !isBetterElsewhere(state, cls, lane, work) ? lane : -1
}

/** Round-robin: the first after the lane served last, then from the shortest (S13). */
export function nextInRound(ready: OrderedSet, cursor: number): number {
  const after = ready.next(cursor + 1)
  return after >= 0 ? after : ready.next(0)
}

function longestFor(state: State, cls: ContractClass, set: OrderedSet): number {
  const key = set.previous(cls.longestHeldKey)
  if (key < 0 || !isBetterElsewhere(state, cls, key, null)) return key
  return set.previous(Math.min(cls.longestHeldKey, cls.inputKey))
}

/**
 * Whether another consumer, with a free place, takes this shape without cutting it, and this one
 * would cut it (S4). Then the other is tried in its turn; nobody waits for it, because it is served
 * within the same round of dispatch steps.
 */
function isBetterElsewhere(
  state: State,
  cls: ContractClass,
  key: number,
  /** Where the other must find it ready; null: anywhere. */
  work: Place | null,
): boolean {
  if (!cls.model.inputLengthsDiffer || key <= cls.inputKey) return false
  if (state.config.serve === 'first') return false
  for (const other of cls.model.classes) {
    if (other === cls || key > other.inputKey || !other.holds(key)) continue
    if (inLine(other).size > 0 && (work === null || isReadyFor(state, other, key, work)))
      return true
  }
  return false
}

function isReadyFor(state: State, cls: ContractClass, key: number, work: Place): boolean {
  if (work === 'due') return cls.due.has(cls.model.shapes.get(key)!.row)
  if (readyOf(cls, work).has(key)) return true
  if (work === 'disk') return false
  const need = spanNeed(cls, mostNeedOf(state, cls))
  return cls.spans?.isReady(cls.model.shapes.get(key)!, need) === true
}

/** The need of the member with a free place that has the most of it. */
function mostNeedOf(state: State, cls: ContractClass): Need {
  const row = cls.freeAndEmpty.top()
  return row < 0 ? 0 : needOf(state.consumerRows[row]!)
}

/**
 * Whether a dispatch waits only for a place: the opposite of S29's "nothing is ready". All channels
 * are empty then, so the need is that of a consumer with nothing in flight, if there is one.
 */
export function isAnythingReady(state: State, model: Model): boolean {
  return model.classes.some((cls) => isReadyForClass(state, cls))
}

/**
 * The same without the consumers that suspects keep from other work: nobody knows for how long, and
 * work that is ready for them alone may not wait beside an idle one (S27, I8).
 */
export function isReadyForOthersThanHolders(state: State, model: Model): boolean {
  const { kept, suspectHolders } = model
  if (kept === null && suspectHolders.length === 0) return isAnythingReady(state, model)
  return model.classes.some((cls) => {
    const holders = suspectHolders.filter((one) => one.cls === cls).length
    const isForSuspects = holders + Number(kept?.cls === cls) === cls.members
    return !isForSuspects && isReadyForClass(state, cls)
  })
}

function isReadyForClass(state: State, cls: ContractClass): boolean {
  const { model } = cls
  const need = model.countedIdle > 0 ? 2 : 1
  const lanesAllowed = state.config.serve === 'next' || cls === firstInLine(model)
  return choose(state, cls, lanesAllowed, null, need) !== null
}

/** The class of the model's first waiting consumer: the only one whose lanes count when plain. */
export function firstInLine(model: Model): ContractClass | null {
  let first: ContractClass | null = null
  for (const cls of model.classes) {
    const row = inLine(cls).top()
    if (row < 0) continue
    if (first === null || isServedBefore(cls, row, first, inLine(first).top())) first = cls
  }
  return first
}

/** Fewest batches held, then longest wait (S11). */
export function isServedBefore(
  a: ContractClass,
  rowA: number,
  b: ContractClass,
  rowB: number,
): boolean {
  const held = a.free.first(rowA) - b.free.first(rowB)
  return held < 0 || (held === 0 && a.free.second(rowA) < b.free.second(rowB))
}

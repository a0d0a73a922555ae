// Every deadline of the core: what `nextTimerAt` answers and what `tick` fires.
//
// Owners hold a handle and move its time, so the earliest time is exact and nothing scans items. Of
// equal times the one set first fires first: items nacked together come back in their order.
//
// Two heaps: what may move work on, and the housekeeping that goes on though nothing will ever happen
// (a live consumer's renewals never end). A simulation ends when the first heap is empty.

import { Heap } from './heap.js'

export const TIMER_GATE = 0 // S10
export const TIMER_LANE_IDLE = 1 // S3, ref: shape row
export const TIMER_CLEANUP_IDLE = 2 // S29, ref: model
export const TIMER_RENEWAL = 3 // S24, S29, ref: consumer
export const TIMER_LEASE_MAX = 4 // S24, ref: batch
export const TIMER_LATE = 5 // S26
export const TIMER_RETRY = 6 // S28, ref: item slot
export const TIMER_JOB_IDS = 7 // S36, ref: job row
export const TIMER_TAKING = 8 // S24, ref: consumer
export const TIMER_GROUP = 9 // S27, ref: group row
export const TIMER_DEADLINE = 10 // S35, ref: item slot
export const TIMER_DISK_DEADLINE = 11 // S35: the first of items on disk
export const TIMER_DUE = 12 // S16, ref: shape row
export const TIMER_OWN_WAIT = 13 // S16, ref: item slot

/** These alone never bring an item nearer to its end. */
const HOUSEKEEPING = new Set([TIMER_LANE_IDLE, TIMER_RENEWAL, TIMER_LATE, TIMER_JOB_IDS])

export class Timers {
  private readonly work = new Heap()
  private readonly housekeeping = new Heap()
  private readonly kinds: number[] = []
  private readonly refs: number[] = []
  private readonly freeHandles: number[] = []
  private stamp = 0

  open(kind: number, ref: number): number {
    const handle = this.freeHandles.pop() ?? this.kinds.length
    this.kinds[handle] = kind
    this.refs[handle] = ref
    return handle
  }

  close(handle: number): void {
    this.heapOf(handle).remove(handle)
    this.freeHandles.push(handle)
  }

  set(handle: number, at: number): void {
    this.heapOf(handle).set(handle, at, ++this.stamp)
  }

  clear(handle: number): void {
    this.heapOf(handle).remove(handle)
  }

  isSet(handle: number): boolean {
    return this.heapOf(handle).has(handle)
  }

  /** When a timer that is set fires. */
  at(handle: number): number {
    return this.heapOf(handle).first(handle)
  }

  /** Infinity when nothing is set. */
  nextAt(): number {
    return Math.min(this.nextWorkAt(), firstOf(this.housekeeping))
  }

  /** The same, housekeeping left out. */
  nextWorkAt(): number {
    return firstOf(this.work)
  }

  /** Takes the earliest timer that is due, or -1. Its handle stays open. */
  takeDue(now: number): number {
    const heap = this.earlier()
    const top = heap.top()
    if (top < 0 || heap.first(top) > now) return -1
    heap.remove(top)
    return top
  }

  private heapOf(handle: number): Heap {
    return HOUSEKEEPING.has(this.kinds[handle]) ? this.housekeeping : this.work
  }

  /** The heap whose first timer fires first: by time, then by the order in which they were set. */
  private earlier(): Heap {
    const { work, housekeeping } = this
    const by = firstOf(work) - firstOf(housekeeping)
    if (by < 0 || housekeeping.size === 0) return work
    if (by > 0 || work.size === 0) return housekeeping
    return work.second(work.top()) < housekeeping.second(housekeeping.top()) ? work : housekeeping
  }

  kind(handle: number): number {
    return this.kinds[handle]
  }

  ref(handle: number): number {
    return this.refs[handle]
  }
}

function firstOf(heap: Heap): number {
  const top = heap.top()
  return top < 0 ? Number.POSITIVE_INFINITY : heap.first(top)
}

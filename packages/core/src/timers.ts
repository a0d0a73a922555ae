// Every deadline of the core, in one heap: what `nextTimerAt` answers and what `tick` fires.
//
// Owners hold a handle and move its time, so the earliest time is exact and nothing scans items. Of
// equal times the one set first fires first: items nacked together come back in their order.

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

export class Timers {
  private readonly heap = new Heap()
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
    this.heap.remove(handle)
    this.freeHandles.push(handle)
  }

  set(handle: number, at: number): void {
    this.heap.set(handle, at, ++this.stamp)
  }

  clear(handle: number): void {
    this.heap.remove(handle)
  }

  isSet(handle: number): boolean {
    return this.heap.has(handle)
  }

  /** Infinity when nothing is set. */
  nextAt(): number {
    const top = this.heap.top()
    return top < 0 ? Number.POSITIVE_INFINITY : this.heap.first(top)
  }

  /** Takes the earliest timer that is due, or -1. Its handle stays open. */
  takeDue(now: number): number {
    const top = this.heap.top()
    if (top < 0 || this.heap.first(top) > now) return -1
    this.heap.remove(top)
    return top
  }

  kind(handle: number): number {
    return this.kinds[handle]
  }

  ref(handle: number): number {
    return this.refs[handle]
  }
}

// Deadlines of items on disk, earliest first. Such an item has no row, so its entry holds all that is
// needed to end it. Items without a deadline have no entry; as many have one as wait on disk at most.

import { Heap } from './heap.js'

export interface DiskDeadlineEntry {
  readonly job: number
  readonly model: number
  readonly paddedLength: number
  readonly sequence: number
  readonly length: number
}

export class DiskDeadlines {
  private readonly heap = new Heap()
  private readonly entries: (DiskDeadlineEntry | null)[] = []
  private readonly handles = new Map<number, number>()
  private readonly free: number[] = []

  constructor(readonly timer: number) {}

  get size(): number {
    return this.handles.size
  }

  /** Infinity when there is none. */
  get firstAt(): number {
    const top = this.heap.top()
    return top < 0 ? Number.POSITIVE_INFINITY : this.heap.first(top)
  }

  add(entry: DiskDeadlineEntry, at: number): void {
    const handle = this.free.pop() ?? this.entries.length
    this.entries[handle] = entry
    this.handles.set(entry.sequence, handle)
    this.heap.set(handle, at, entry.sequence)
  }

  /** The entry that is due first, taken out. */
  take(): DiskDeadlineEntry {
    const entry = this.entries[this.heap.top()]!
    this.remove(entry.sequence)
    return entry
  }

  remove(sequence: number): void {
    const handle = this.handles.get(sequence)
    if (handle === undefined) return
    this.handles.delete(sequence)
    this.heap.remove(handle)
    this.entries[handle] = null
    this.free.push(handle)
  }

  removeJob(job: number): void {
    if (this.size === 0) return
    for (const entry of this.entries) if (entry?.job === job) this.remove(entry.sequence)
  }
}

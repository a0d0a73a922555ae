// The queue of a shape, staging or lane: jobs take turns in it by tokens (S20, S20a).
//
// Each job with items here has a queue of its own, in a ring. A turn is `weight` times the shape's
// padded length in tokens: at least one item, so finding the next item never searches. An item that
// ends a turn may pass it; what it took too much is taken off the job's next turn. One job alone pays
// nothing for this: its queue object stays with the shape, and nothing is charged.

import type { Items } from './items.js'
import type { MixedQueue } from './mixed-queue.js'
import { Queue } from './queue.js'

/** A job's items in one shape: in order of arrival, or by padded length where it spans several. */
type List = Queue | MixedQueue

export type NewList = () => List

export const newPlainList: NewList = () => new Queue()

class JobQueue {
  /** Tokens left of its turn; what it took too much when 0 or less. */
  deficit = 0
  next: JobQueue = this
  previous: JobQueue = this

  constructor(
    /** Row of the job. */
    public job: number,
    /** Tokens of a turn. */
    public quantum: number,
    readonly list: List,
  ) {}
}

export class ShapeQueue {
  count = 0
  tokens = 0
  /** The job whose turn it is. It has items unless the whole queue is empty, and deficit when others wait. */
  private turn: JobQueue
  /** By row of the job, while two jobs or more have items here. */
  private byJob: Map<number, JobQueue> | null = null

  constructor(
    private readonly paddedLength: number,
    private readonly newList: NewList,
  ) {
    this.turn = new JobQueue(-1, paddedLength, newList())
  }

  /** The item that leaves next, or -1. */
  get head(): number {
    return this.turn.list.head
  }

  /** The item that leaves next in a batch padded to `paddedKey`, where the shape spans several (S20). */
  headFor(items: Items, paddedKey: number): number {
    const { list } = this.turn
    return list instanceof Queue || list.count === 0 ? list.head : list.nearest(items, paddedKey)
  }

  /** Behind the items of its job (S20). `weight` is the job's. */
  push(items: Items, slot: number, weight: number): void {
    const job = items.job.get(slot)
    const isTurn = this.count > 0 && this.turn.job === job
    const queue = isTurn ? this.turn : this.queueFor(job, weight)
    queue.list.push(items, slot)
    this.count++
    this.tokens += items.length.get(slot)
  }

  /** Takes out the head, or what `headFor` named, for a batch: its job is charged for it (S20a). */
  take(items: Items, slot = this.head): number {
    const { turn } = this
    const length = items.length.get(slot)
    turn.list.remove(items, slot)
    this.count--
    this.tokens -= length
    if (this.byJob === null) return slot
    turn.deficit -= length
    if (turn.list.count === 0) this.drop(turn)
    else if (turn.deficit <= 0) this.pass()
    return slot
  }

  /** Takes out any item that does not leave by its job's turn: nothing is charged. */
  remove(items: Items, slot: number): void {
    const queue = this.find(items.job.get(slot))!
    queue.list.remove(items, slot)
    this.count--
    this.tokens -= items.length.get(slot)
    if (queue.list.count === 0 && this.byJob !== null) this.drop(queue)
  }

  /** The oldest item of a job, by its row, or -1. */
  headOf(job: number): number {
    return this.find(job)?.list.head ?? -1
  }

  /** Calls `visit` for the head of each job. */
  forEachHead(visit: (slot: number) => void): void {
    if (this.count === 0) return
    let queue = this.turn
    do {
      visit(queue.list.head)
      queue = queue.next
    } while (queue !== this.turn)
  }

  private find(job: number): JobQueue | undefined {
    if (this.turn.job === job) return this.turn
    return this.byJob?.get(job)
  }

  private queueFor(job: number, weight: number): JobQueue {
    const quantum = weight * this.paddedLength
    if (this.count === 0) {
      // The row of a job that is gone may be used by another one: its weight is new, too.
      this.turn.job = job
      this.turn.quantum = quantum
      return this.turn
    }
    const known = this.byJob?.get(job)
    if (known !== undefined) return known
    if (this.byJob === null) {
      this.byJob = new Map([[this.turn.job, this.turn]])
      this.turn.deficit = this.turn.quantum
    }
    const queue = new JobQueue(job, quantum, this.newList())
    this.byJob.set(job, queue)
    this.link(queue)
    return queue
  }

  /** At the end of the round: before the job whose turn it is. */
  private link(queue: JobQueue): void {
    const { turn } = this
    queue.next = turn
    queue.previous = turn.previous
    turn.previous.next = queue
    turn.previous = queue
  }

  /** Forgets the queue of a job that has no items here any more, and its deficit with it. */
  private drop(queue: JobQueue): void {
    if (queue === this.turn) this.pass()
    queue.previous.next = queue.next
    queue.next.previous = queue.previous
    this.byJob!.delete(queue.job)
    if (this.byJob!.size === 1) this.byJob = null
  }

  /** The next job's turn. A turn is at least what the last one may have taken too much. */
  private pass(): void {
    this.turn = this.turn.next
    this.turn.deficit += this.turn.quantum
  }
}

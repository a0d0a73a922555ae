// Jobs that take turns in a shape, by tokens (S20a): there is one of these only while two or more have
// items there.
//
// A turn is `weight` times the shape's padded length in tokens: at least one item, so finding the next
// item never searches. An item that ends a turn may pass it; what it took too much is taken off the
// job's next turn.

import type { MixedQueue } from './mixed-queue.js'
import type { Queue } from './queue.js'

/** A job's items in one shape: in order of arrival, or by padded length where it spans several. */
export type List = Queue | MixedQueue

export class JobQueue {
  /** Tokens left of its turn; what it took too much when 0 or less. */
  deficit = 0
  next: JobQueue = this
  previous: JobQueue = this

  constructor(
    /** Row of the job. */
    readonly job: number,
    /** Tokens of a turn. */
    readonly quantum: number,
    readonly list: List,
  ) {}
}

export class Turns {
  /** The job whose turn it is: it has items, and deficit. */
  current: JobQueue
  private readonly byJob: Map<number, JobQueue>

  constructor(first: JobQueue) {
    first.deficit = first.quantum
    this.current = first
    this.byJob = new Map([[first.job, first]])
  }

  get size(): number {
    return this.byJob.size
  }

  find(job: number): JobQueue | undefined {
    return this.byJob.get(job)
  }

  /** At the end of the round: before the job whose turn it is. */
  add(queue: JobQueue): void {
    const { current } = this
    this.byJob.set(queue.job, queue)
    queue.next = current
    queue.previous = current.previous
    current.previous.next = queue
    current.previous = queue
  }

  /** So many tokens of the job whose turn it is left. */
  charge(tokens: number): void {
    const { current } = this
    current.deficit -= tokens
    if (current.list.count === 0) this.drop(current)
    else if (current.deficit <= 0) this.pass()
  }

  /** Forgets the queue of a job that has no items here any more, and its deficit with it. */
  drop(queue: JobQueue): void {
    if (queue === this.current) this.pass()
    queue.previous.next = queue.next
    queue.next.previous = queue.previous
    this.byJob.delete(queue.job)
  }

  /** The next job's turn. A turn is at least what the last one may have taken too much. */
  private pass(): void {
    this.current = this.current.next
    this.current.deficit += this.current.quantum
  }
}

// The queue of a shape, staging or lane: jobs take turns in it (S20, S20a).
//
// As long as one job alone has items here, and they are of one padded length, the queue itself is the
// list of them: nothing is charged for turns, and one look finds all there is. Tens of thousands of
// lanes are like that.

import type { Items } from './items.js'
import { Queue } from './queue.js'
import { JobQueue, type List, Turns } from './turns.js'

export type NewList = () => List

/** `count` and `tokens` are of all jobs; `head` leaves next. */
export class ShapeQueue extends Queue {
  /** Row of the job whose turn it is: it has items unless the whole queue is empty. */
  private job = -1
  /** Its items, or null while the queue itself is the list of them. */
  private list: List | null
  /** While two jobs or more have items here. */
  private turns: Turns | null = null
  /** Tokens of a turn of that job. */
  private quantum = 0

  constructor(
    /** Its longest item, rounded up: the edge of its class. */
    readonly paddedLength: number,
    /** For a shape that spans several padded lengths (S20), else null. */
    protected readonly newMixedList: NewList | null,
  ) {
    super()
    this.list = newMixedList === null ? null : newMixedList()
  }

  /** The item that leaves next in a batch padded to `paddedKey`, where the shape spans several (S20). */
  headFor(items: Items, paddedKey: number): number {
    const { list } = this
    if (list === null || list instanceof Queue || this.count === 0) return this.head
    return list.nearest(items, paddedKey)
  }

  /** Behind the items of its job (S20). `weight` is the job's. */
  override push(items: Items, slot: number, weight = 1): void {
    const job = items.job.get(slot)
    if (this.count === 0) {
      // The row of a job that is gone may be used by another one: its weight is new, too.
      this.job = job
      this.quantum = this.quantumOf(weight)
    }
    if (this.list === null && this.job === job) {
      super.push(items, slot)
      return
    }
    this.listFor(job, weight).push(items, slot)
    this.changed(1, items.length.get(slot))
  }

  /** Takes out the head, or what `headFor` named, for a batch: its job is charged for it (S20a). */
  take(items: Items, slot = this.head): number {
    if (this.list === null) {
      super.remove(items, slot)
      return slot
    }
    const length = items.length.get(slot)
    this.list.remove(items, slot)
    if (this.turns !== null) {
      this.turns.charge(length)
      this.followTurns(this.turns)
    }
    this.changed(-1, -length)
    return slot
  }

  /** Takes out any item that does not leave by its job's turn: nothing is charged. */
  override remove(items: Items, slot: number): void {
    if (this.list === null) {
      super.remove(items, slot)
      return
    }
    const job = items.job.get(slot)
    const list = job === this.job ? this.list : this.turns!.find(job)!.list
    list.remove(items, slot)
    if (this.turns !== null && list.count === 0) {
      this.turns.drop(this.turns.find(job)!)
      this.followTurns(this.turns)
    }
    this.changed(-1, -items.length.get(slot))
  }

  /** The oldest item of a job, by its row, or -1. */
  headOf(job: number): number {
    return job === this.job ? this.head : (this.turns?.find(job)?.list.head ?? -1)
  }

  /** Calls `visit` for the head of each job. */
  forEachHead(visit: (slot: number) => void): void {
    if (this.count === 0) return
    if (this.turns === null) {
      visit(this.head)
      return
    }
    const { current } = this.turns
    let queue = current
    do {
      visit(queue.list.head)
      queue = queue.next
    } while (queue !== current)
  }

  private changed(items: number, tokens: number): void {
    this.count += items
    this.tokens += tokens
    if (this.list !== null) this.head = this.list.head
  }

  private listFor(job: number, weight: number): List {
    if (job === this.job && this.list !== null) return this.list
    const known = this.turns?.find(job)
    if (known !== undefined) return known.list
    this.list ??= this.moveToList()
    this.turns ??= new Turns(new JobQueue(this.job, this.quantum, this.list))
    const list = this.newMixedList === null ? new Queue() : this.newMixedList()
    this.turns.add(new JobQueue(job, this.quantumOf(weight), list))
    return list
  }

  private quantumOf(weight: number): number {
    return weight * this.paddedLength
  }

  private moveToList(): Queue {
    const { head, tail, count, tokens } = this
    return Object.assign(new Queue(), { head, tail, count, tokens })
  }

  private followTurns({ current, size }: Turns): void {
    const { job, list, quantum } = current
    this.job = job
    this.list = list
    this.quantum = quantum
    if (size > 1) return
    this.turns = null
    if (this.newMixedList !== null) return
    this.list = null
    this.head = list.head
    this.tail = (list as Queue).tail
  }
}

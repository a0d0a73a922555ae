// The disk tier's counts: what of it is on disk, what stands in the window, and which shapes are ready
// by both together (S8, S12, S13).
//
// An item on disk has no row: only its job's part of a shape counts it, so a backlog costs memory by
// the number of jobs and shapes. Readiness looks at all that a shape has, in the window or not; what a
// batch needs is read when its turn has come (read-ahead.ts). So the window's size never decides what
// is served next.

import type { ContractClass } from './contracts.js'
import { armDue, dueChanged, duePartAt } from './due.js'
import { ITEM_WINDOW } from './items.js'
import { type Job, jobOfItem } from './jobs.js'
import type { Model, Shape } from './models.js'
import { beginWait, leaveDueQueue } from './own-waits.js'
import { dropShapeIfUnused, shapeOf, shapeOfItem } from './shapes.js'
import { beginPassingOver } from './starvation.js'
import { type State, touch } from './state.js'
import { DISK_ROUND_TO } from './submission.js'

/** Parts are found by job row and length: both fit into one exact number. */
const LENGTHS = 2 ** 29

/** Items of one job and disk shape that are on disk and have no row. */
export class DiskPart {
  items = 0
  tokens = 0
  /** Tokens of the load under way, or 0. */
  loading = 0
  /** No item of it was accepted before. */
  oldestAt = 0
  /** Greater numbers that a read may still bring and that are not on disk alone: ended, or in memory. */
  skipped: Set<number> | null = null

  constructor(
    readonly key: number,
    readonly job: Job,
    readonly shape: Shape,
    /** A multiple of DISK_ROUND_TO; the shape's own may be longer. */
    readonly paddedLength: number,
    /** It is read in the order of numbers: up to this one none of its items is on disk alone. */
    public readUpTo: number,
  ) {}
}

export function diskLength(length: number): number {
  return Math.ceil(length / DISK_ROUND_TO) * DISK_ROUND_TO
}

const keyOf = (job: Job, paddedLength: number) => job.row * LENGTHS + paddedLength / DISK_ROUND_TO

export function findPart(job: Job, shape: Shape, paddedLength: number): DiskPart | undefined {
  return shape.parts.get(keyOf(job, paddedLength))
}

/** The part of a job and disk shape, made for the item of that number when it is the first. */
export function partOf(
  state: State,
  job: Job,
  model: Model,
  paddedLength: number,
  firstSequence = 1,
): DiskPart {
  const shape = shapeOf(state, model, paddedLength)
  const known = findPart(job, shape, paddedLength)
  if (known !== undefined) return known
  const part = new DiskPart(keyOf(job, paddedLength), job, shape, paddedLength, firstSequence - 1)
  part.oldestAt = state.now
  shape.ownParts().set(part.key, part)
  job.parts.add(part)
  return part
}

export function dropPartIfUnused(state: State, part: DiskPart): void {
  if (part.items > 0 || part.loading > 0) return
  part.shape.parts.delete(part.key)
  part.job.parts.delete(part)
  dropShapeIfUnused(state, part.shape)
}

/** Items come to a part or leave it; whether they wait is counted elsewhere. */
export function changePart(state: State, part: DiskPart, items: number, tokens: number): void {
  part.items += items
  part.tokens += tokens
  part.shape.items += items
  if (part.job.onHold) {
    state.tiers.held.items += items
    state.tiers.held.tokens += tokens
    return
  }
  changeOnDisk(state, part.shape, items, tokens)
  if (items > 0) armPart(state, part)
}

/** What is on disk is due by its job's word (S16). */
function armPart(state: State, part: DiskPart): void {
  armDue(state, part.shape, duePartAt(part))
}

/** A job goes on hold, or off it: what it has on disk is ready no more, or again (S34). */
export function holdParts(state: State, job: Job, sign: 1 | -1): void {
  for (const part of job.parts) {
    state.tiers.held.items += sign * part.items
    state.tiers.held.tokens += sign * part.tokens
    changeOnDisk(state, part.shape, -sign * part.items, -sign * part.tokens)
    if (sign < 0 && part.items > 0) armPart(state, part)
  }
}

function changeOnDisk(state: State, shape: Shape, items: number, tokens: number): void {
  const before = diskItems(shape)
  shape.onDiskItems += items
  shape.onDiskTokens += tokens
  diskChanged(state, shape, before, tokens)
}

/** Puts a waiting item of the disk tier into its shape's window. */
export function queueInWindow(state: State, slot: number): void {
  const shape = shapeOfItem(state, slot)
  state.items.state.set(slot, ITEM_WINDOW)
  shape.ownWindow().push(state.items, slot, jobOfItem(state, slot).weight)
  countInWindow(state, shape, slot, 1)
  beginWait(state, shape, slot)
}

/** Takes the item out of the window. */
export function withdrawWindow(state: State, slot: number): void {
  const shape = shapeOfItem(state, slot)
  leaveDueQueue(state, shape, slot)
  shape.window.remove(state.items, slot)
  countInWindow(state, shape, slot, -1)
}

/** Takes the window's next item for a batch. */
export function takeFromWindow(state: State, shape: Shape, slot: number): void {
  leaveDueQueue(state, shape, slot)
  countInWindow(state, shape, shape.window.take(state.items, slot), -1)
}

function countInWindow(state: State, shape: Shape, slot: number, sign: 1 | -1): void {
  const { items } = state
  const tokens = sign * items.length.get(slot)
  shape.windowBytes += sign * (items.tokensBytes(slot) + items.payloadBytes.get(slot))
  state.window.items += sign
  state.window.tokens += tokens
  diskChanged(state, shape, diskItems(shape) - sign, tokens)
}

/** On disk and in the window. */
export function diskItems(shape: Shape): number {
  return shape.onDiskItems + shape.window.count
}

function diskTokens(shape: Shape): number {
  return shape.onDiskTokens + shape.window.tokens
}

function diskChanged(state: State, shape: Shape, before: number, tokens: number): void {
  const { model } = shape
  const after = diskItems(shape)
  state.tiers.disk.items += after - before
  state.tiers.disk.tokens += tokens
  model.diskItems += after - before
  if (before === 0 && after > 0) {
    model.onDisk.add(shape.key)
    beginPassingOver(state, shape, 'disk')
  }
  if (before > 0 && after === 0) model.onDisk.remove(shape.key)
  for (const cls of model.classes) {
    indexOnDisk(cls, shape, before, diskTokens(shape) - tokens)
  }
  dueChanged(state, shape, after === 0)
  touch(state, model)
}

/** Indexes the model's disk tier for a class that has just come. */
export function indexClassOnDisk(model: Model, cls: ContractClass): void {
  for (let key = model.onDisk.next(0); key >= 0; key = model.onDisk.next(key + 1)) {
    indexOnDisk(cls, model.shapes.get(key)!, 0, 0)
  }
}

function indexOnDisk(cls: ContractClass, shape: Shape, before: number, tokensBefore: number): void {
  const { key } = shape
  const at = cls.readyAt(key)
  if (at === null) return
  const had = at.batches(before, tokensBefore)
  const has = at.batches(diskItems(shape), diskTokens(shape))
  cls.fullBatchesOnDisk += has - had
  if (had === 0 && has > 0) cls.readyOnDisk.add(key)
  if (had > 0 && has === 0) cls.readyOnDisk.remove(key)
}

// What is read from disk, and when: the items of the batch that is due next, and some more of the
// shape that was just served, as long as the window has room (readAheadTokens).
//
// The core asks by a `load` effect and the shell answers with `loaded`. A dispatch that lacks items
// decides nothing; the shell dispatches again once it has answered, so a free place and ready work
// never coexist for longer than a read (I5).

import { acceptIfEarly } from './admission.js'
import type { ContractClass } from './contracts.js'
import { Cut } from './cut.js'
import { changePart, type DiskPart, dropPartIfUnused, findPart } from './disk.js'
import { dropDiskDeadline } from './disk-deadlines.js'
import { makeRow } from './disk-rows.js'
import { dueHead, duePartAt } from './due.js'
import type { CoreEvent } from './events.js'
import { jobById, touchJob } from './jobs.js'
import type { Shape } from './models.js'
import { nextShorter } from './packer.js'
import { type Choice, nextInRound } from './ready.js'
import { keyOfLength } from './shapes.js'
import type { State } from './state.js'
import type { LoadedBlock } from './submission.js'
import { changeWaiting } from './waiting.js'

/** Batches of the greatest contract that one load brings at most. */
const BATCHES_PER_LOAD = 2
/** Shapes of the round that are looked at after each batch: more than consumers ask for at once. */
const SHAPES_AHEAD = 8

/** Whether items of the chosen batch are not in memory yet; asks for them. */
export function awaitItems(state: State, cls: ContractClass, choice: Choice): boolean {
  const shape = cls.model.shapes.get(choice.key)!
  switch (choice.work) {
    case 'disk':
      return !holdsBatch(state, cls, shape) && ask(state, shape, missing(cls, shape))
    case 'due':
      return awaitDue(state, cls, shape)
    case 'alone':
      return shape.window.count + shape.queue.count === 0 && ask(state, shape, 1)
    case 'cleanup':
      return awaitTail(state, cls, shape)
    default:
      return false
  }
}

/** What makes the shape due, and what a batch has room for beside it (S16). */
function awaitDue(state: State, cls: ContractClass, shape: Shape): boolean {
  // Those with a wait of their own are in memory, and wait for nothing but what was passed over.
  if (shape.due.ownAt <= state.now && !shape.due.isStarved) return false
  if (dueHead(state, shape) < 0) return askOldest(state, shape, missing(cls, shape))
  return !holdsBatch(state, cls, shape) && ask(state, shape, missing(cls, shape))
}

/** The part that is due first, if one is. */
function askOldest(state: State, shape: Shape, tokens: number): boolean {
  if (shape.loads > 0) return true
  let oldest: DiskPart | null = null
  for (const part of shape.parts.values()) {
    const at = duePartAt(part)
    if (at <= state.now && (oldest === null || at < duePartAt(oldest))) oldest = part
  }
  if (oldest === null) return ask(state, shape, tokens)
  beginLoad(state, oldest, tokens)
  return true
}

/** Whether the window has what one batch can take of the shape. */
function holdsBatch(state: State, cls: ContractClass, shape: Shape): boolean {
  if (shape.onDiskItems === 0) return true
  return (
    cls.fullAt(shape.key).batches(shape.window.count, shape.window.tokens) > 0 ||
    shape.windowBytes >= state.config.maxBatchBytes
  )
}

function missing(cls: ContractClass, shape: Shape): number {
  const { tokens, batchSize } = cls.contract
  const items = batchSize - shape.window.count
  return Math.max(1, Math.min(tokens - shape.window.tokens, items * shape.paddedLength))
}

/** A cleanup batch takes shorter shapes too: all that may go into it (S31). */
function awaitTail(state: State, cls: ContractClass, longest: Shape): boolean {
  const { model, contract, budget } = cls
  let room = contract.tokens
  let awaited = false
  for (let key = longest.key; key >= 0 && room > 0; key = nextShorter(model, key)) {
    const shape = model.shapes.get(key)!
    const { window, queue } = shape
    const inMemory = window.count + queue.count
    room -= budget.tokensOf(inMemory, longest.paddedLength, window.tokens + queue.tokens)
    if (room <= 0 || shape.onDiskItems === 0) continue
    awaited = ask(state, shape, room) || awaited
    room -= budget.tokensOf(shape.onDiskItems, longest.paddedLength, shape.onDiskTokens)
    if (!state.config.cleanupMerge) break
  }
  return awaited
}

/**
 * A shape was served: the next ones of the round are read while the consumers work (S13). What there
 * is no room for is read when its turn has come.
 */
export function readAhead(state: State, cls: ContractClass): void {
  const { readyOnDisk, model } = cls
  const first = nextInRound(readyOnDisk, model.cursor)
  let key = first
  for (let looked = 0; key >= 0 && looked < SHAPES_AHEAD; looked++) {
    readShapeAhead(state, cls, model.shapes.get(key)!)
    key = nextInRound(readyOnDisk, key)
    if (key === first) return
  }
}

function readShapeAhead(state: State, cls: ContractClass, shape: Shape): void {
  if (holdsBatch(state, cls, shape)) return
  const room = state.config.readAheadTokens - state.window.tokens - state.tokensLoading
  const wanted = Math.min(room, BATCHES_PER_LOAD * cls.model.mostTokens)
  if (wanted >= missing(cls, shape)) ask(state, shape, wanted)
}

/** Reads some of each shape of the job, whether or not it is on hold; no batch waits for it. */
export function readOut(state: State, id: number): void {
  const { parts } = jobById(state, id)
  const tokens = Math.ceil(state.config.readAheadTokens / Math.max(1, parts.size)) + 1
  for (const part of parts) {
    if (part.items > 0 && part.loading === 0) beginLoad(state, part, tokens)
  }
}

/** Jobs take turns, one load each (S20a). Answers whether something is under way. */
function ask(state: State, shape: Shape, tokens: number): boolean {
  if (shape.loads > 0) return true
  for (const part of shape.parts.values()) {
    if (part.job.onHold || part.items === 0) continue
    shape.parts.delete(part.key)
    shape.parts.set(part.key, part)
    beginLoad(state, part, tokens)
    return true
  }
  return false
}

function beginLoad(state: State, part: DiskPart, tokens: number): void {
  const { job, shape, paddedLength } = part
  part.loading = Math.min(tokens, part.tokens)
  shape.loads++
  state.tokensLoading += part.loading
  state.effects.push({
    type: 'load',
    job: job.id,
    model: shape.model.id,
    paddedLength,
    tokens: part.loading,
    maxBytes: state.config.maxBatchBytes,
  })
}

/** Also for a load whose answer will not be used. */
export function endLoad(state: State, part: DiskPart): void {
  if (part.loading === 0) return
  part.shape.loads--
  state.tokensLoading -= part.loading
  part.loading = 0
}

/** What was read of a job that is gone by now is dropped: the store drops it too. */
export function onLoaded(state: State, event: Extract<CoreEvent, { type: 'loaded' }>): void {
  const part = partOfLoad(state, event)
  if (part === undefined || part.loading === 0) return
  endLoad(state, part)
  if (event.items === null) lose(state, part, part.items, part.tokens)
  else takeIn(state, part, event.items)
  dropPartIfUnused(state, part)
}

/** Items were found damaged: those of them that were read before are in memory, and go on. */
export function onLost(state: State, event: Extract<CoreEvent, { type: 'lost' }>): void {
  const part = partOfLoad(state, event)
  if (part === undefined) return
  const items = Math.min(event.items, part.items)
  lose(state, part, items, items === part.items ? part.tokens : Math.min(event.tokens, part.tokens))
  dropPartIfUnused(state, part)
}

function partOfLoad(
  state: State,
  { job: id, model: modelId, paddedLength }: Extract<CoreEvent, { type: 'loaded' | 'lost' }>,
): DiskPart | undefined {
  const job = state.jobs.get(id)
  const model = state.models.get(modelId)
  const shape = model?.shapes.get(keyOfLength(state, paddedLength))
  return job === undefined || shape === undefined ? undefined : findPart(job, shape, paddedLength)
}

function takeIn(state: State, part: DiskPart, loaded: LoadedBlock): void {
  const { block, sequences, acceptedAt, deadlineAt } = loaded
  const { model } = part.shape
  const cut = new Cut(block, state.config.lengthsOnly === true)
  for (let at = 0; at < block.count; at++) {
    cut.next(at)
    if (isSkipped(part, sequences[at])) continue
    const early = acceptIfEarly(state, part.job, model, sequences[at], cut.length)
    // From now on the item's row has the timer.
    dropDiskDeadline(state, sequences[at])
    makeRow(state, cut, {
      job: part.job,
      model,
      sequence: sequences[at],
      acceptedAt: acceptedAt[at],
      maxWaitMs: early ? (state.admittedWaits.get(sequences[at]) ?? 0) : 0,
      deadlineAt: deadlineAt?.[at] ?? 0,
    })
    if (!early) changePart(state, part, -1, -cut.length)
    part.oldestAt = acceptedAt[at]
    part.readUpTo = sequences[at]
  }
  forgetRead(part)
}

/** What ended and was not brought any more: the store knew of its end. */
function forgetRead(part: DiskPart): void {
  if (part.skipped === null) return
  for (const sequence of part.skipped) if (sequence <= part.readUpTo) part.skipped.delete(sequence)
  if (part.skipped.size === 0) part.skipped = null
}

/** It has ended, or was in memory from the first: a read brings it all the same. */
function isSkipped(part: DiskPart, sequence: number): boolean {
  return sequence <= part.readUpTo || part.skipped?.delete(sequence) === true
}

/**
 * The counts said that there is more, and the disk has nothing: rather than to ask for ever, it is
 * counted as failed, and told.
 */
function lose(state: State, part: DiskPart, items: number, tokens: number): void {
  const { job, shape, paddedLength } = part
  if (items === 0) return
  changePart(state, part, -items, -tokens)
  changeWaiting(state, job, shape.model, -items, -tokens)
  state.settled.failed += items
  job.settled.failed += items
  touchJob(state, job)
  state.effects.push({ type: 'lost', job: job.id, model: shape.model.id, paddedLength, items })
}

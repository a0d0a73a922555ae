// Poison: finding the item that kills its consumers, by halves (S27).
//
// Blame must be certain, or neighbours would be quarantined. So a suspect group goes only to a
// consumer that holds nothing, and nothing else goes to that consumer until it has said how the group
// ended: whatever kills it then was in the group. Under load no consumer is ever empty by itself;
// then the first in line is kept: it finishes what it holds and gets the group next.

import { type Consumer, refresh } from './consumers.js'
import type { ContractClass } from './contracts.js'
import type { Death } from './effects.js'
import { fitsClass, fittingCount } from './group-packing.js'
import type { Group } from './group-table.js'
import { halves, newGroup, queueGroup, takeGroup } from './groups.js'
import { type Job, jobOfItem } from './jobs.js'
import type { Batch } from './lease-table.js'
import type { Model } from './models.js'
import { quarantine } from './quarantine.js'
import { isServedBefore } from './ready.js'
import type { Settlement } from './settle.js'
import { NS_PER_MS, type State } from './state.js'
import { TIMER_GROUP } from './timers.js'
import { stopWaiting } from './waiting.js'

/** Deaths of a lone suspect that quarantine it. */
const DEATHS_ALONE_MAX = 2

/**
 * What a consumer had taken when it died is under suspicion. The items wait, and stand nowhere yet;
 * `places[i]` is the place of item i in the batch. Answers those that wait again.
 */
export function suspect(
  state: State,
  batch: Batch,
  slots: readonly number[],
  places: readonly number[],
  death: Death,
  settlement: Settlement,
): readonly number[] {
  const group = newGroup(state, 'suspect', batch.model, slots)
  const before = batch.group?.kind === 'suspect' ? batch.group : null
  group.deaths = (before?.deaths ?? 0) + 1
  group.deathsAlone = before?.deathsAlone ?? 0
  group.isHalf = before?.isHalf ?? false
  group.evidence = [...(before?.evidence ?? []), death]
  // Only what was issued as a suspect was alone on its consumer: the first death proves little.
  if (before !== null && batch.items.length === 1) group.deathsAlone++
  if (group.deathsAlone >= DEATHS_ALONE_MAX) {
    stopWaiting(state, slots[0])
    quarantine(state, slots[0], places[0], group.evidence, settlement)
    return []
  }
  const splits = group.isHalf || group.deaths >= state.config.poisonDeaths
  if (splits && slots.length > 1) for (const half of halves(state, group)) queueAndFit(state, half)
  else queueAndFit(state, group)
  return slots
}

/** Queues a group, in parts that some consumer of its model holds. */
export function queueAndFit(state: State, group: Group): void {
  if (group.kind === 'suspect' && group.live === 1 && group.deathsAlone > 0) {
    group.waitsUntil = group.evidence.at(-1)!.at + state.config.leaseTimeoutMs * NS_PER_MS
  }
  const queued = queueGroup(state, group)
  if (queued === null) return
  queued.waitsUntil = group.waitsUntil
  armTimer(state, queued)
  splitToFit(state, queued)
}

/** Moves the job's items out of the groups that are ready, or back among them (S34, S35). */
export function regroup(state: State, job: Job): void {
  if (!job.onHold) {
    for (const group of [...job.heldGroups]) moveGroup(state, group)
    return
  }
  for (const backlog of job.backlogs.values()) {
    const model = state.models.get(backlog.model)
    for (const group of [...(model?.groups ?? [])]) {
      const concerned = group.slots.some((slot) => slot >= 0 && jobOfItem(state, slot) === job)
      if (concerned) moveGroup(state, group)
    }
  }
}

function moveGroup(state: State, group: Group): void {
  takeGroup(state, group)
  queueAndFit(state, group)
}

function armTimer(state: State, group: Group): void {
  if (group.waitsUntil <= state.now) return
  group.timer = state.timers.open(TIMER_GROUP, group.row)
  state.timers.set(group.timer, group.waitsUntil)
}

/** The consumers changed: a group that none of them holds any more goes in smaller parts. */
export function reviewGroups(state: State, model: Model): void {
  for (const group of [...model.groups]) splitToFit(state, group)
}

function splitToFit(state: State, group: Group): void {
  const { classes } = group.model
  if (group.live < 2 || classes.length === 0) return
  if (classes.some((cls) => fitsClass(state, group, cls))) return
  takeGroup(state, group)
  const slots = group.slots.filter((slot) => slot >= 0)
  for (let from = 0; from < slots.length; ) {
    const most = Math.max(...classes.map((cls) => fittingCount(state, slots, from, cls)))
    const part = group.part(state.groups.nextNumber(), slots.slice(from, from + most))
    part.isHalf = true
    queueAndFit(state, part)
    from += most
  }
}

export interface GroupService {
  readonly consumer: Consumer
  readonly group: Group
}

/** The first group that a consumer may have now, and that consumer. */
export function nextGroupService(state: State): GroupService | null {
  for (const model of state.groups.models) {
    for (const group of model.groups) {
      const consumer = consumerFor(state, group, group.kind === 'suspect')
      if (consumer !== null) return { consumer, group }
      if (group.kind === 'suspect') keepConsumer(state, group)
    }
  }
  return null
}

/** The first in line that may have the group: one that holds nothing, if `empty`. */
function consumerFor(state: State, group: Group, empty: boolean): Consumer | null {
  let best: Consumer | null = null
  for (const cls of group.model.classes) {
    const row = cls.free.top()
    if (row < 0 || (empty && cls.free.first(row) > 0)) continue
    const consumer = allowedInClass(state, group, cls, empty)
    if (consumer === null) continue
    if (best === null || isServedBefore(cls, consumer.row, best.cls, best.row)) best = consumer
  }
  return best
}

function allowedInClass(
  state: State,
  group: Group,
  cls: ContractClass,
  empty: boolean,
): Consumer | null {
  if (!fitsClass(state, group, cls)) return null
  const first = state.consumerRows[cls.free.top()]!
  if (isAllowed(state, group, first)) return first
  // It killed the first in line, so another is looked for: rare, and over within leaseTimeout.
  let best: Consumer | null = null
  for (const member of group.model.members) {
    if (member.cls !== cls || !member.hasPlace || !isAllowed(state, group, member)) continue
    if (empty && cls.free.first(member.row) > 0) continue
    if (best === null || isServedBefore(cls, member.row, cls, best.row)) best = member
  }
  return best
}

/** For leaseTimeout a lone suspect waits for a consumer other than those that it was alone on. */
function isAllowed(state: State, group: Group, consumer: Consumer): boolean {
  if (group.waitsUntil <= state.now) return true
  return group.evidence.at(-1)!.consumer !== consumer.name
}

/** One consumer of a model at a time is kept for its suspects; one that has some is free for more. */
function keepConsumer(state: State, group: Group): void {
  const { model } = group
  if (model.kept !== null) return
  const taken = model.suspectHolders.some(
    (holder) => fitsClass(state, group, holder.cls) && isAllowed(state, group, holder),
  )
  if (taken) return
  const consumer = consumerFor(state, group, false)
  if (consumer === null) return
  model.kept = consumer
  refresh(state, consumer)
}

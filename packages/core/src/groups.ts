// Groups: items that came back together and leave together, in a batch of their own (S27, S28).
//
// Two rules make them: the items of a batch that was taken at a death are suspects, and a batch that
// ran out of memory comes back in halves. A group is never merged or topped up. It waits in its
// model's list, oldest first, or with its job while that is on hold. Groups are few, deaths and
// refusals for memory being rare, so the list is searched from its front.

import { refresh } from './consumers.js'
import { Group, type GroupKind } from './group-table.js'
import { ITEM_GROUPED } from './items.js'
import { type Job, jobOfItem } from './jobs.js'
import type { Model } from './models.js'
import { shapeOfItem } from './shapes.js'
import { type State, touch } from './state.js'
import { count } from './waiting.js'

export function newGroup(
  state: State,
  kind: GroupKind,
  model: Model,
  slots: readonly number[],
): Group {
  return new Group(state.groups.nextNumber(), model, kind, slots)
}

/**
 * Has items that wait, and stand nowhere yet, wait as a group; those of jobs on hold apart. Answers
 * the part that is not on hold, or null.
 */
export function queueGroup(state: State, group: Group): Group | null {
  const free: number[] = []
  const held = new Map<Job, number[]>()
  for (const slot of group.slots) {
    if (slot < 0) continue
    const job = jobOfItem(state, slot)
    const slots = job.onHold ? (held.get(job) ?? []) : free
    slots.push(slot)
    if (job.onHold) held.set(job, slots)
  }
  for (const [job, slots] of held) {
    placeGroup(state, group.part(state.groups.nextNumber(), slots), job)
  }
  if (free.length === 0) return null
  const rest = held.size === 0 ? group : group.part(state.groups.nextNumber(), free)
  placeGroup(state, rest, null)
  return rest
}

function placeGroup(state: State, group: Group, heldBy: Job | null): void {
  const { items, tiers, groups } = state
  group.slots = group.slots.filter((slot) => slot >= 0)
  groups.open(group)
  group.heldBy = heldBy
  group.slots.forEach((slot, index) => {
    items.state.set(slot, ITEM_GROUPED)
    items.next.set(slot, group.row)
    items.previous.set(slot, index)
    count(heldBy === null ? tiers.reclaimed : tiers.held, state, slot, 1)
  })
  if (heldBy !== null) {
    heldBy.heldGroups.push(group)
    return
  }
  const { model } = group
  if (model.groups.length === 0) groups.models.push(model)
  model.groups.push(group)
  if (group.kind === 'suspect') model.suspectGroups++
  touch(state, model)
}

/** The items stand nowhere then; they wait still. */
export function takeGroup(state: State, group: Group): void {
  const { tiers } = state
  for (const slot of group.slots) {
    if (slot >= 0) count(group.heldBy === null ? tiers.reclaimed : tiers.held, state, slot, -1)
  }
  dropGroup(state, group)
}

/** Takes one item out of the group with which it waits. */
export function withdrawGrouped(state: State, slot: number): void {
  const { items, tiers, groups } = state
  const group = groups.rows[items.next.get(slot)]!
  count(group.heldBy === null ? tiers.reclaimed : tiers.held, state, slot, -1)
  group.slots[items.previous.get(slot)] = -1
  group.live--
  group.fits.clear()
  if (group.live === 0) dropGroup(state, group)
}

function dropGroup(state: State, group: Group): void {
  const { model, heldBy } = group
  state.groups.close(group)
  if (group.timer >= 0) state.timers.close(group.timer)
  group.timer = -1
  group.heldBy = null
  if (heldBy !== null) {
    heldBy.heldGroups.splice(heldBy.heldGroups.indexOf(group), 1)
    return
  }
  model.groups.splice(model.groups.indexOf(group), 1)
  if (group.kind === 'suspect' && --model.suspectGroups === 0) unkeep(state, model)
  if (model.groups.length === 0) {
    state.groups.models.splice(state.groups.models.indexOf(model), 1)
  }
  touch(state, model)
}

/** The consumer that was kept for the model's suspects is one like the others again. */
export function unkeep(state: State, model: Model): void {
  const { kept } = model
  model.kept = null
  if (kept !== null) refresh(state, kept)
}

/** Splits a group that waits in two: each half keeps its count (S27). */
export function halves(state: State, group: Group): readonly Group[] {
  const slots = group.slots.filter((slot) => slot >= 0)
  const middle = Math.ceil(slots.length / 2)
  return [slots.slice(0, middle), slots.slice(middle)].map((part) => {
    const half = group.part(state.groups.nextNumber(), part)
    half.isHalf = true
    return half
  })
}

/** The longest shape in the group, as a key. */
export function longestKey(state: State, group: Group): number {
  let longest = 0
  for (const slot of group.slots) {
    if (slot >= 0) longest = Math.max(longest, shapeOfItem(state, slot).key)
  }
  return longest
}

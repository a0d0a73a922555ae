// The release gate: a start condition, not a throttle (S7, S9, S10).
//
// It is looked at after every step but a dispatch, from counts that are kept anyway. Once open it
// stays open, so a broker under way pays one comparison.

import type { GateReason } from './effects.js'
import type { Model } from './models.js'
import { MOST_NEED } from './spans.js'
import { NS_PER_MS, type State, touch } from './state.js'

export function openGateIfDue(state: State): void {
  const { gate, config } = state
  // The backlog is there already: there is nothing to wait for (S8).
  if (!gate.open && config.mode === 'disk') open(state, 'disk', 0)
  // Every contract has at least one token: 0 = no consumer, and the gate stays closed (S7).
  if (gate.open || gate.contractTokens === 0) return
  const reason = reasonToOpen(state)
  if (reason === null) return
  open(state, reason, heldNs(state))
}

function open(state: State, reason: GateReason, heldNs: number): void {
  const { gate } = state
  gate.open = true
  gate.reason = reason
  gate.heldNs = heldNs
  state.timers.clear(gate.timer)
  for (const model of state.models.values()) touch(state, model)
  state.effects.push({ type: 'gate', reason, heldNs })
}

/** S7: an operator's number, else what fills every channel and one batch more for each. */
export function releaseThreshold(state: State): number {
  const { releaseThreshold, maxQueuedTokens } = state.config
  if (releaseThreshold !== null) return releaseThreshold
  return Math.min(state.gate.contractTokens, Math.floor(maxQueuedTokens / 2))
}

/** How long the oldest held item has waited; 0 when the gate holds nothing. */
export function heldNs(state: State): number {
  const oldest = oldestHeld(state)
  return oldest < 0 ? 0 : state.now - oldest
}

function reasonToOpen(state: State): GateReason | null {
  const { config, served } = state
  const threshold = releaseThreshold(state)
  const held = served.queueTokens
  // The lanes grow no more once something is spilled: to wait for more in them might be for ever.
  if (state.isDiskASpill && state.tiers.disk.items > 0) return 'disk'
  if (config.gateOpensOn === 'threshold') return held >= threshold ? 'threshold' : null
  // Twice the threshold opens without a ready batch: with many lanes none might ever be full.
  if (held >= threshold && (held >= 2 * threshold || isNormalBatchReady(state))) return 'threshold'
  if (served.waitingItems === 0) return null
  if (served.openItems === 0) return 'flush'
  if (state.gate.refusedForRoom) return 'full'
  if (isAnythingDue(state)) return 'due'
  return isHeldTooLong(state) ? 'max_hold' : null
}

/** By a time of its own: a job's default never opens the gate. */
function isAnythingDue(state: State): boolean {
  for (const model of state.models.values()) if (model.served && model.opensGate > 0) return true
  return false
}

function isHeldTooLong(state: State): boolean {
  const { gate, timers, config } = state
  if (config.gateMaxHoldMs === 0) return false
  // The oldest item is looked for only when no timer stands: it changes only with the consumers,
  // or when a job is deleted, and both clear the timer.
  if (timers.isSet(gate.timer)) return false
  const oldest = oldestHeld(state)
  if (oldest < 0) return false
  const due = oldest + config.gateMaxHoldMs * NS_PER_MS
  if (state.now >= due) return true
  timers.set(gate.timer, due)
  return false
}

function isNormalBatchReady(state: State): boolean {
  for (const model of state.models.values()) {
    // Nothing is in flight while the gate is closed: spans count as for the most need (S13b).
    for (const cls of model.classes) {
      if (!cls.ready.isEmpty() || (cls.spans?.readyFor(MOST_NEED) ?? -1) >= 0) return true
    }
  }
  return false
}

function oldestHeld(state: State): number {
  let oldest = -1
  for (const model of state.models.values()) {
    if (!model.served) continue
    const accepted = oldestOfModel(state, model)
    if (accepted >= 0 && (oldest < 0 || accepted < oldest)) oldest = accepted
  }
  return oldest
}

/** Acceptance of the oldest head of a job among a model's queues, or -1. */
export function oldestOfModel(state: State, model: Model): number {
  let oldest = -1
  const look = (slot: number) => {
    if (slot < 0) return
    const accepted = state.items.acceptedAt.get(slot)
    if (oldest < 0 || accepted < oldest) oldest = accepted
  }
  for (let key = model.queued.next(0); key >= 0; key = model.queued.next(key + 1)) {
    model.shapes.get(key)!.queue.forEachHead(look)
  }
  for (let key = model.onDisk.next(0); key >= 0; key = model.onDisk.next(key + 1)) {
    const { window, parts } = model.shapes.get(key)!
    window.forEachHead(look)
    for (const part of parts.values()) {
      if (part.items > 0 && (oldest < 0 || part.oldestAt < oldest)) oldest = part.oldestAt
    }
  }
  for (let key = model.reclaimed.next(0); key >= 0; key = model.reclaimed.next(key + 1)) {
    look(model.shapes.get(key)!.reclaimed.head)
  }
  for (const group of model.groups) look(group.slots[0])
  return oldest
}

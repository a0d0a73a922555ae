// Deadlines: an item that is not done in time expires, also while every consumer is busy (S35).
//
// Only items with a deadline have a timer and an entry here; the others cost nothing.

import { endEarly } from './early-ends.js'
import { NS_PER_MS, type State } from './state.js'
import { TIMER_DEADLINE } from './timers.js'

/** `ms` counts from now, the acceptance; 0 = none. */
export function setDeadline(state: State, slot: number, ms: number): void {
  if (ms > 0) setDeadlineAt(state, slot, state.now + ms * NS_PER_MS)
}

export function setDeadlineAt(state: State, slot: number, at: number): void {
  const timer = state.timers.open(TIMER_DEADLINE, slot)
  state.timers.set(timer, at)
  state.deadlines.set(slot, timer)
}

/** The item has ended. */
export function dropDeadline(state: State, slot: number): void {
  if (state.deadlines.size === 0) return
  const timer = state.deadlines.get(slot)
  if (timer === undefined) return
  state.timers.close(timer)
  state.deadlines.delete(slot)
}

export function onDeadline(state: State, slot: number): void {
  state.pastDeadline.push(slot)
}

/** Ends those whose time has come in this tick, together. */
export function expirePast(state: State): void {
  if (state.pastDeadline.length === 0) return
  endEarly(state, state.pastDeadline, 'expired')
  state.pastDeadline.length = 0
}

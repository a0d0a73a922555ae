// Cleanup: how the tail of a model's work leaves (S29, S30, S32, S33).
//
// The time of S29 runs only while its conditions hold without a break; they are looked at when a
// dispatch step finds nothing to do, because only then "nothing is ready" is settled for the instant.

import type { Model } from './models.js'
import { isAnythingReady, isReadyForOthersThanHolders } from './ready.js'
import { NS_PER_MS, type State, touch } from './state.js'
import { TIMER_CLEANUP_IDLE } from './timers.js'

/** Looks at the models that changed; true when one entered cleanup and has work to give out. */
export function beginCleanups(state: State): boolean {
  let began = false
  for (const model of state.touchedModels) {
    model.touched = false
    if (isDue(state, model)) {
      begin(state, model)
      began = true
    }
  }
  state.touchedModels.length = 0
  return began
}

/** Input has ended, or the conditions have held for cleanupIdle (S29). */
function isDue(state: State, model: Model): boolean {
  const { cleanup } = model
  if (cleanup.active) return false
  const drained = model.freshItems > 0 && model.counted > 0 && model.countedBusyChannels === 0
  if (drained && model.inputEnded && !isAnythingReady(state, model)) return true
  if (!drained || model.countedIdle === 0 || isReadyForOthersThanHolders(state, model)) {
    stopWaitingForIdle(state, model)
    return false
  }
  if (cleanup.idleSince < 0) cleanup.idleSince = state.now
  const due = cleanup.idleSince + state.config.cleanupIdleMs * NS_PER_MS
  if (state.now >= due) return true
  if (cleanup.timer < 0) cleanup.timer = state.timers.open(TIMER_CLEANUP_IDLE, model.id)
  state.timers.set(cleanup.timer, due)
  return false
}

function stopWaitingForIdle(state: State, model: Model): void {
  model.cleanup.idleSince = -1
  if (model.cleanup.timer >= 0) state.timers.clear(model.cleanup.timer)
}

/** The next dispatch step looks at the model again. */
export function onCleanupIdle(state: State, modelId: number): void {
  touch(state, state.models.get(modelId)!)
}

function begin(state: State, model: Model): void {
  const { cleanup } = model
  stopWaitingForIdle(state, model)
  cleanup.active = true
  cleanup.beganAt = state.now
  cleanup.batches = 0
  cleanup.items = 0
  state.cleanupTotals.entries++
  state.modelsInCleanup.push(model)
  state.effects.push({
    type: 'cleanup',
    model: model.id,
    state: 'begin',
    batches: 0,
    items: 0,
    ns: 0,
  })
}

/** Ends it where staging, lanes and disk shapes are empty (S32). */
export function endFinishedCleanups(state: State): void {
  for (let i = state.modelsInCleanup.length - 1; i >= 0; i--) {
    if (state.modelsInCleanup[i].freshItems === 0) endCleanup(state, state.modelsInCleanup[i])
  }
}

/** Also at once when a new item of the model is accepted (S32). */
export function endCleanup(state: State, model: Model): void {
  const { cleanup } = model
  if (!cleanup.active) return
  const ns = state.now - cleanup.beganAt
  cleanup.active = false
  state.cleanupTotals.ns += ns
  state.modelsInCleanup.splice(state.modelsInCleanup.indexOf(model), 1)
  const { batches, items } = cleanup
  state.effects.push({ type: 'cleanup', model: model.id, state: 'end', batches, items, ns })
  touch(state, model)
}

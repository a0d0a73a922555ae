// What the core tells about itself, as plain numbers: `/v1/state`, `/metrics`, the status page.

import { ageingOfModel } from './ageing.js'
import type { Consumer } from './consumers.js'
import type {
  ConsumerCounts,
  CoreCounts,
  JobCounts,
  ModelCounts,
  Tier,
  TierCounts,
} from './core-counts.js'
import { heldNs, oldestOfModel, releaseThreshold } from './gate.js'
import type { Job } from './jobs.js'
import type { Model } from './models.js'
import type { State } from './state.js'

export function countsOf(state: State): CoreCounts {
  const models = [...state.models.values()]
  return {
    accepted: state.acceptedItems,
    waiting: { ...state.waiting },
    queue: queueCounts(state),
    leased: state.leasedItems,
    settled: { ...state.settled },
    lanesActive: state.lanesActive,
    window: { ...state.window },
    reserved: { ...state.reserved },
    gate: gateCounts(state),
    cleanup: cleanupCounts(state),
    consumers: [...state.consumers.values()].map((one) => consumerCounts(state, one)),
    models: models.map((model) => modelCounts(state, model)),
    jobs: [...state.jobs.values()].map(jobCounts),
    unservedItems: models
      .filter((model) => !model.served && model.waitingItems > 0)
      .map((model) => ({ model: model.id, items: model.waitingItems })),
    oldestItemAgeNs: oldestAgeNs(state, models),
    reclaimedItems: state.reclaimedItems,
    groups: groupCounts(state),
    quarantine: { items: state.quarantine.entries.size, dropped: state.quarantine.dropped },
    outOfMemoryBatches: state.outOfMemoryBatches,
    lateResults: state.lateResults,
    aloneBatches: state.aloneBatches,
    arenaBytes: state.items.arena.allocatedBytes(),
  }
}

function queueCounts(state: State): Record<Tier, TierCounts> {
  const { staging, lane, disk, reclaimed, retrying, held } = state.tiers
  return {
    staging: { ...staging },
    lane: { ...lane },
    disk: { ...disk },
    reclaimed: { ...reclaimed },
    retrying: { ...retrying },
    held: { ...held },
  }
}

export function gateCounts(state: State): CoreCounts['gate'] {
  const { gate, served } = state
  const thresholdTokens = releaseThreshold(state)
  const share = thresholdTokens > 0 ? Math.min(1, served.queueTokens / thresholdTokens) : 1
  return {
    open: gate.open,
    reason: gate.reason,
    heldNs: gate.open ? gate.heldNs : heldNs(state),
    heldTokens: gate.open ? 0 : served.queueTokens,
    thresholdTokens,
    progress: gate.open ? 1 : share,
  }
}

function groupCounts(state: State): CoreCounts['groups'] {
  let waiting = 0
  let items = 0
  for (const model of state.groups.models) {
    waiting += model.groups.length
    for (const group of model.groups) items += group.live
  }
  return { waiting, items }
}

function cleanupCounts(state: State): CoreCounts['cleanup'] {
  const active = state.modelsInCleanup
  const running = active.reduce((ns, model) => ns + state.now - model.cleanup.beganAt, 0)
  const { entries, ns, batches, items } = state.cleanupTotals
  return { entries, ns: ns + running, batches, items, models: active.map((model) => model.id) }
}

function consumerCounts(state: State, consumer: Consumer): ConsumerCounts {
  const running = consumer.idleSince < 0 ? 0 : state.now - consumer.idleSince
  const { model } = consumer
  const duringInput = model.firstDispatchAt >= 0 && model.inputEndedAt < 0
  return {
    id: consumer.id,
    name: consumer.name,
    contract: consumer.contract,
    effectiveTokens: consumer.cls.contract.tokens,
    state: consumer.draining ? 'draining' : 'live',
    overdue: consumer.overdue,
    channel: consumer.channel.length,
    inFlight: consumer.inFlight.length,
    batches: consumer.batches,
    items: consumer.items,
    shapeSwitches: consumer.shapeSwitches,
    idleNs: consumer.idleNs + running,
    idleNsDuringInput: consumer.idleNsDuringInput + (duringInput ? running : 0),
  }
}

function modelCounts(state: State, model: Model): ModelCounts {
  return {
    model: model.id,
    ageing: ageingOfModel(state, model),
    consumers: model.members.length,
    waiting: { items: model.waitingItems, tokens: model.waitingTokens },
    lanesActive: model.lanesActive,
    inCleanup: model.cleanup.active,
    firstDispatchAt: model.firstDispatchAt < 0 ? null : model.firstDispatchAt,
    inputEndedAt: model.inputEndedAt < 0 ? null : model.inputEndedAt,
  }
}

function jobCounts(job: Job): JobCounts {
  return {
    job: job.id,
    flushed: job.flushed,
    accepted: job.accepted,
    waiting: job.waiting,
    leased: job.leased,
    settled: { ...job.settled },
    unreadResultBytes: job.unreadResultBytes,
    onHold: job.onHold,
    paused: job.paused,
  }
}

/** By the heads of the queues: an item that a retry brought back stands behind younger ones. */
function oldestAgeNs(state: State, models: readonly Model[]): number {
  let oldest = state.now
  for (const model of models) {
    const accepted = oldestOfModel(state, model)
    if (accepted >= 0 && accepted < oldest) oldest = accepted
  }
  return state.now - oldest
}

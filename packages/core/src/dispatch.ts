// One dispatch step: whom to serve, with what, and what is remembered of it (S11, S12, S15, S22).

import { beginCleanups } from './cleanup.js'
import {
  beginDispatching,
  type Consumer,
  refresh,
  setHoldsSuspects,
  waitAnew,
} from './consumers.js'
import type { ContractClass } from './contracts.js'
import { packGroup } from './group-packing.js'
import type { Group } from './group-table.js'
import { takeGroup, unkeep } from './groups.js'
import { lease } from './leases.js'
import { noteDrained } from './limits.js'
import { noteReduced } from './out-of-memory.js'
import { type Packing, pack } from './packer.js'
import { awaitItems, readAhead } from './read-ahead.js'
import { type Choice, choose, firstInLine, inLine, isServedBefore, needOf } from './ready.js'
import { notePassedOver } from './starvation.js'
import type { State } from './state.js'
import { type GroupService, nextGroupService } from './suspects.js'

interface Service {
  readonly consumer: Consumer
  readonly choice: Choice
}

/** Decides at most one batch. When nothing is ready, a model may enter cleanup, and then it is. */
export function dispatch(state: State): void {
  if (!state.gate.open) return
  const awaiting: ContractClass[] = []
  for (;;) {
    const suspects = state.groups.models.length === 0 ? null : nextGroupService(state)
    if (suspects !== null) {
      serveGroup(state, suspects)
      return
    }
    const service = nextService(state, awaiting)
    if (service === null) {
      // What waits for the disk is ready: nothing has come to its tail.
      if (awaiting.length > 0 || !beginCleanups(state)) return
    } else if (awaitItems(state, service.consumer.cls, service.choice)) {
      awaiting.push(service.consumer.cls)
    } else {
      serve(state, service)
      return
    }
  }
}

/** The first consumer in line for whom something is ready (S11). */
function nextService(state: State, awaiting: readonly ContractClass[]): Service | null {
  let best: Service | null = null
  for (const cls of state.freeClasses) {
    const first = inLine(cls).top()
    if (first < 0 || awaiting.includes(cls)) continue
    best = serviceOf(state, first, best) ?? best
    // Nothing is ready for the first in line, whose channel holds a batch: whose channel is empty
    // needs more (S13b), and the first of those in line needs the most.
    const needier = cls.freeAndEmpty.top()
    const isTried = state.config.serve === 'first' || best?.consumer.cls === cls
    if (isTried || cls.spans === null || needier < 0 || needier === first) continue
    best = serviceOf(state, needier, best) ?? best
  }
  return best
}

/** What is ready for a consumer, or null; null too when it is served after `before`. */
function serviceOf(state: State, row: number, before: Service | null): Service | null {
  const consumer = state.consumerRows[row]!
  const { cls } = consumer
  if (before !== null && !isServedBefore(cls, row, before.consumer.cls, before.consumer.row)) {
    return null
  }
  const choice = choose(state, cls, areLanesAllowed(state, cls), consumer, needOf(consumer))
  return choice === null ? null : { consumer, choice }
}

/** Plain rule: only the first waiting consumer's ready size counts. The tail is not bound by it. */
function areLanesAllowed(state: State, cls: ContractClass): boolean {
  return state.config.serve === 'next' || firstInLine(cls.model) === cls
}

function serve(state: State, { consumer, choice }: Service): void {
  const { model, cls } = consumer
  const packing = pack(state, cls, choice)
  const fromQueue = choice.work === 'lane' || choice.work === 'disk'
  const isFull = choice.isFull === true && packing.closedBy() !== 'lane_empty'
  const normal = (fromQueue || isFull) && !model.cleanup.active
  model.aloneServedLast = choice.work === 'alone'
  if (normal && fromQueue) noteLane(consumer, choice)
  issue(state, consumer, packing, normal, null)
  if (choice.work === 'disk') readAhead(state, cls)
}

/** A group leaves as it is; a suspect one takes its consumer for itself (S27). */
function serveGroup(state: State, { consumer, group }: GroupService): void {
  takeGroup(state, group)
  const packing = packGroup(state, group, consumer.cls)!
  if (group.kind === 'suspect') setHoldsSuspects(consumer, true)
  issue(state, consumer, packing, false, group)
}

function issue(
  state: State,
  consumer: Consumer,
  packing: Packing,
  normal: boolean,
  group: Group | null,
): void {
  const { model } = consumer
  const inCleanup = model.cleanup.active && group === null
  beginDispatching(state, model)
  const batch = lease(state, consumer, packing.slots, group)
  waitAnew(state, consumer)
  if (model.kept === consumer) unkeep(state, model)
  refresh(state, consumer)
  model.cleanup.idleSince = -1
  notePassedOver(state, model)
  countBatch(state, consumer, packing, inCleanup)
  state.effects.push({
    type: 'dispatch',
    batch: batch.number,
    consumer: consumer.id,
    model: model.id,
    items: batch.items,
    size: batch.items.length,
    paddedLength: packing.paddedLength,
    actualTokens: packing.actualTokens,
    budgetTokens: packing.budgetTokens,
    fill: packing.budgetTokens / consumer.contract.tokens,
    closedBy: packing.closedBy(),
    source: packing.source!,
    sources: packing.sources,
    cleanup: inCleanup,
    normal,
    attempt: highestDeliveries(state, packing) + 1,
    group: group?.number ?? null,
  })
  noteReduced(state, consumer)
}

/**
 * The round goes on from the lane where the last run began. A batch that affinity kept at its lane
 * does not move it: else the next consumer would be sent to that lane too, and the others starve.
 */
function noteLane(consumer: Consumer, { key, kept }: Choice): void {
  if (kept) {
    consumer.laneRun++
    return
  }
  consumer.lane = key
  consumer.laneRun = 1
  consumer.model.cursor = key
}

function countBatch(state: State, consumer: Consumer, packing: Packing, inCleanup: boolean): void {
  const size = packing.slots.length
  const { cleanup } = consumer.model
  if (packing.closedBy() === 'alone') state.aloneBatches++
  if (inCleanup) {
    cleanup.batches++
    cleanup.items += size
    state.cleanupTotals.batches++
    state.cleanupTotals.items += size
  }
  const switched = consumer.batches > 0 && consumer.lastPaddedLength !== packing.paddedLength
  if (switched) consumer.shapeSwitches++
  consumer.lastPaddedLength = packing.paddedLength
  consumer.batches++
  consumer.items += size
  noteDrained(state, size, packing.actualTokens)
}

function highestDeliveries(state: State, packing: Packing): number {
  let highest = 0
  for (const slot of packing.slots) {
    const deliveries = state.items.deliveries.get(slot)
    if (deliveries > highest) highest = deliveries
  }
  return highest
}

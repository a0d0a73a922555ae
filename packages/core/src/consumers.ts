// Consumers: coming, going, renewing, and the order in which they are served (S11, S24).
//
// `refresh` is the one place that derives from a consumer's channel, flight and state who may be
// served and what counts for cleanup. Whoever changes one of them calls it.

import { Budget } from './budget.js'
import {
  CONTRACT_CLASSES_MAX,
  ContractClass,
  type Refusal,
  refuseContract,
  sameClass,
} from './contracts.js'
import { CoreBug } from './core-bug.js'
import type { Contract } from './core-config.js'
import { indexClassOnDisk } from './disk.js'
import { indexClassDue } from './due.js'
import { indexClass } from './lanes.js'
import type { Batch } from './lease-table.js'
import type { Model } from './models.js'
import { dropModelIfUnused, modelOf } from './shapes.js'
import { reviewStaging } from './staging.js'
import { NS_PER_MS, type State, touch } from './state.js'
import { reviewGroups } from './suspects.js'
import { TIMER_RENEWAL, TIMER_TAKING } from './timers.js'

export class Consumer {
  draining = false
  gone = false
  /** The transport has room for a worst-case batch. */
  hasRoom = true
  /** No renewal for more than leaseTimeout / 3 (S29). */
  overdue = false
  heardAt = 0
  /** Dispatched and not taken, oldest first. */
  readonly channel: Batch[] = []
  /** Taken and not settled. */
  readonly inFlight: Batch[] = []
  hasPlace = false
  /** Order of waiting: the least has waited longest (S11). */
  waitStamp = 0
  /** What this consumer adds to its model's counts for S29. */
  counted = false
  countedBusy = false
  countedIdle = false
  /** Since when it has nothing to do, or -1. */
  idleSince = -1
  idleNs = 0
  idleNsDuringInput = 0
  batches = 0
  items = 0
  shapeSwitches = 0
  lastPaddedLength = 0
  /** It holds a suspect group, and gets nothing else until it has said how that ended (S27). */
  holdsSuspects = false
  /** Batches until it has its whole budget again, 0 when it has (S28). */
  reducedBatchesLeft = 0
  /** Key of the lane whose run it is in, or -1, and the batches of that run (S15). */
  lane = -1
  laneRun = 0

  constructor(
    readonly id: number,
    readonly row: number,
    readonly name: string,
    /** As registered; its class may stand for less for a while (S28). */
    readonly contract: Contract,
    public cls: ContractClass,
    readonly timer: number,
    /** Set while it could take a batch of its channel (S24). */
    readonly takingTimer: number,
  ) {}

  get model(): Model {
    return this.cls.model
  }
}

export function register(state: State, id: number, name: string, contract: Contract): void {
  if (state.consumers.has(id)) throw new CoreBug(`consumer ${id} is registered`)
  const refusal = refuseContract(contract) ?? refuseClass(state, contract)
  if (refusal !== null) {
    state.effects.push({ type: 'registerRefused', consumer: id, ...refusal })
    return
  }
  const model = modelOf(state, contract.model)
  const warnings = warningsFor(state, model, contract)
  const row = state.freeConsumerRows.pop() ?? state.consumerRows.length
  const cls = joinClass(state, model, contract)
  const renewal = state.timers.open(TIMER_RENEWAL, id)
  const taking = state.timers.open(TIMER_TAKING, id)
  const consumer = new Consumer(id, row, name, contract, cls, renewal, taking)
  state.consumers.set(id, consumer)
  state.consumerRows[row] = consumer
  state.effects.push({ type: 'registered', consumer: id, warnings })
  join(state, consumer)
  renew(state, consumer)
}

function refuseClass(state: State, contract: Contract): Refusal | null {
  // As registered: the classes of consumers that are short of memory come and go by themselves (S28).
  const contracts: Contract[] = []
  for (const member of state.models.get(contract.model)?.members ?? []) {
    if (sameClass(member.contract, contract)) return null
    if (!contracts.some((one) => sameClass(one, member.contract))) contracts.push(member.contract)
  }
  if (contracts.length < CONTRACT_CLASSES_MAX) return null
  return {
    code: 'FABRIC_CONTRACT_CLASSES',
    message: `model ${contract.model} has ${CONTRACT_CLASSES_MAX} different contracts already`,
    field: 'contract',
  }
}

function warningsFor(state: State, model: Model, contract: Contract): string[] {
  const warnings: string[] = []
  const other = model.classes.find((cls) => cls.contract.inputLength !== contract.inputLength)
  if (other !== undefined) {
    warnings.push(
      `inputLength ${contract.inputLength} differs from ${other.contract.inputLength} of another consumer of model ${contract.model}: long items may be truncated on one and not on the other`,
    )
  }
  const { lengthClasses, config } = state
  const key = lengthClasses.classKey(lengthClasses.paddedKey(contract.inputLength))
  if (new Budget(contract, config).longestHeldKey() < key) {
    warnings.push(
      `tokens ${contract.tokens} cannot hold one item of length ${key * config.roundTo}, the length class of inputLength ${contract.inputLength}: items of that class go alone, or as few as there are`,
    )
  }
  return warnings
}

function joinClass(state: State, model: Model, contract: Contract): ContractClass {
  let cls = model.classes.find((one) => sameClass(one.contract, contract))
  if (cls === undefined) {
    cls = new ContractClass(model, contract, state.config)
    model.classes.push(cls)
    model.classesVersion++
    indexClass(model, cls)
    indexClassOnDisk(model, cls)
    indexClassDue(model, cls)
  }
  cls.members++
  return cls
}

function join(state: State, consumer: Consumer): void {
  const { model } = consumer
  if (!model.served) countServed(state, model, 1)
  model.members.push(consumer)
  membersChanged(state, model, consumer, 1)
  refresh(state, consumer)
}

/** Takes a consumer out of the order of service: it drains or is dead. Its leases stay. */
export function leave(state: State, consumer: Consumer): void {
  const { model, cls } = consumer
  refresh(state, consumer)
  model.members.splice(model.members.indexOf(consumer), 1)
  if (model.kept === consumer) model.kept = null
  if (consumer.holdsSuspects) setHoldsSuspects(consumer, false)
  leaveClass(model, cls)
  if (!model.served) countServed(state, model, -1)
  membersChanged(state, model, consumer, -1)
  dropModelIfUnused(state, model)
}

function leaveClass(model: Model, cls: ContractClass): void {
  cls.members--
  if (cls.members > 0) return
  model.classes.splice(model.classes.indexOf(cls), 1)
  model.classesVersion++
}

/** Gives the consumer another budget, and with it another class of its model, for a while (S28). */
export function setEffectiveTokens(state: State, consumer: Consumer, tokens: number): void {
  const { model, cls, contract, row } = consumer
  if (tokens === cls.contract.tokens || consumer.gone || consumer.draining) return
  // Each class is a cost of every arrival (S14): beyond this many a consumer keeps its budget.
  const isCrowded = model.classes.length >= 2 * CONTRACT_CLASSES_MAX
  if (isCrowded && tokens !== contract.tokens) return
  cls.free.remove(row)
  cls.freeAndEmpty.remove(row)
  listClass(state, cls)
  leaveClass(model, cls)
  consumer.cls = joinClass(state, model, { ...contract, tokens })
  classesChanged(state, model)
  refresh(state, consumer)
  state.effects.push({ type: 'budget', consumer: consumer.id, tokens })
}

export function setHoldsSuspects(consumer: Consumer, holds: boolean): void {
  const { suspectHolders } = consumer.model
  if (holds) suspectHolders.push(consumer)
  else suspectHolders.splice(suspectHolders.indexOf(consumer), 1)
  consumer.holdsSuspects = holds
}

function membersChanged(state: State, model: Model, consumer: Consumer, sign: 1 | -1): void {
  const { channelDepth } = state.config
  model.places += sign * channelDepth
  state.gate.contractTokens += sign * consumer.contract.tokens * (channelDepth + 1)
  state.timers.clear(state.gate.timer)
  classesChanged(state, model)
}

function classesChanged(state: State, model: Model): void {
  model.longestHeldKey = Math.max(0, ...model.classes.map((cls) => cls.longestHeldKey))
  model.mostTokens = Math.max(0, ...model.classes.map((cls) => cls.contract.tokens))
  model.inputLengthsDiffer = model.classes.some((cls) => cls.inputKey !== model.classes[0].inputKey)
  reviewStaging(state, model)
  reviewGroups(state, model)
  touch(state, model)
}

/** Items of a model count for the gate from its first consumer to its last (S6). */
function countServed(state: State, model: Model, sign: 1 | -1): void {
  state.served.queueItems += sign * model.queueItems
  state.served.queueTokens += sign * model.queueTokens
  state.served.waitingItems += sign * model.waitingItems
  state.served.openItems += sign * model.openItems
}

/** Removes a dead or drained consumer whose leases are gone. */
export function forget(state: State, consumer: Consumer): void {
  state.timers.close(consumer.timer)
  state.timers.close(consumer.takingTimer)
  state.consumers.delete(consumer.id)
  state.consumerRows[consumer.row] = null
  state.freeConsumerRows.push(consumer.row)
}

export function renew(state: State, consumer: Consumer): void {
  consumer.heardAt = state.now
  const timeoutNs = state.config.leaseTimeoutMs * NS_PER_MS
  state.timers.set(consumer.timer, state.now + Math.floor(timeoutNs / 3))
  if (!consumer.overdue) return
  consumer.overdue = false
  refresh(state, consumer)
}

/** Marks a consumer whose renewal is late; answers true when its leases are lost (S24, S29). */
export function onRenewalLate(state: State, consumer: Consumer): boolean {
  if (consumer.overdue) return true
  consumer.overdue = true
  refresh(state, consumer)
  state.timers.set(consumer.timer, consumer.heardAt + state.config.leaseTimeoutMs * NS_PER_MS)
  return false
}

/** Queues a consumer anew, after a batch (S11). */
export function waitAnew(state: State, consumer: Consumer): void {
  consumer.waitStamp = ++state.lastWaitStamp
}

export function refresh(state: State, consumer: Consumer): void {
  const live = !consumer.draining && !consumer.gone
  const depth = consumer.channel.length
  const isFree = !consumer.holdsSuspects && !isEmptying(consumer)
  const place = live && isFree && consumer.hasRoom && depth < state.config.channelDepth
  if (place && !consumer.hasPlace) waitAnew(state, consumer)
  consumer.hasPlace = place
  orderForService(state, consumer, place, depth)
  boundTaking(state, consumer)
  countForCleanup(consumer, live && !consumer.overdue)
  const idle = live && depth === 0 && consumer.inFlight.length === 0
  accrueIdle(state, consumer)
  consumer.idleSince = idle ? state.now : -1
  touch(state, consumer.model)
}

/**
 * A consumer that renews, could take a batch and does not would keep its channel for ever: leaseMax
 * bounds that too, from when it could, and anew from each batch that it takes (S24).
 */
function boundTaking(state: State, { channel, inFlight, cls, takingTimer }: Consumer): void {
  const could = channel.length > 0 && inFlight.length < cls.contract.maxInFlight
  if (could === state.timers.isSet(takingTimer)) return
  if (could) state.timers.set(takingTimer, state.now + state.config.leaseMaxMs * NS_PER_MS)
  else state.timers.clear(takingTimer)
}

/** It is kept for suspects, and has not finished what it holds (S27). */
function isEmptying(consumer: Consumer): boolean {
  if (consumer.model.kept !== consumer) return false
  return consumer.channel.length + consumer.inFlight.length > 0
}

function orderForService(state: State, consumer: Consumer, place: boolean, depth: number): void {
  const { cls, row, waitStamp } = consumer
  const held = depth + consumer.inFlight.length
  if (place) cls.free.set(row, held, waitStamp)
  else cls.free.remove(row)
  if (place && depth === 0) cls.freeAndEmpty.set(row, held, waitStamp)
  else cls.freeAndEmpty.remove(row)
  listClass(state, cls)
}

function listClass(state: State, cls: ContractClass): void {
  const { freeClasses } = state
  if (cls.free.size > 0 === cls.listed >= 0) return
  if (cls.listed < 0) {
    cls.listed = freeClasses.push(cls) - 1
    return
  }
  const last = freeClasses.pop()!
  if (last !== cls) {
    freeClasses[cls.listed] = last
    last.listed = cls.listed
  }
  cls.listed = -1
}

function countForCleanup(consumer: Consumer, counted: boolean): void {
  const { model } = consumer
  const busy = counted && consumer.channel.length > 0
  const idle = counted && consumer.inFlight.length === 0
  model.counted += Number(counted) - Number(consumer.counted)
  model.countedBusyChannels += Number(busy) - Number(consumer.countedBusy)
  model.countedIdle += Number(idle) - Number(consumer.countedIdle)
  consumer.counted = counted
  consumer.countedBusy = busy
  consumer.countedIdle = idle
}

/** Adds the idle time up to now, so that what bounds it may change. */
export function accrueIdle(state: State, consumer: Consumer): void {
  if (consumer.idleSince < 0) return
  const elapsed = state.now - consumer.idleSince
  const { model } = consumer
  consumer.idleNs += elapsed
  if (model.firstDispatchAt >= 0 && model.inputEndedAt < 0) consumer.idleNsDuringInput += elapsed
  consumer.idleSince = state.now
}

export function beginDispatching(state: State, model: Model): void {
  if (model.firstDispatchAt >= 0) return
  for (const member of model.members) accrueIdle(state, member)
  model.firstDispatchAt = state.now
}

export function endInput(state: State, model: Model): void {
  if (model.inputEndedAt >= 0) return
  for (const member of model.members) accrueIdle(state, member)
  model.inputEndedAt = state.now
}

export function resumeInput(state: State, model: Model): void {
  if (model.inputEndedAt < 0) return
  for (const member of model.members) accrueIdle(state, member)
  model.inputEndedAt = -1
}

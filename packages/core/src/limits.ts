// Limits of the queue, and when to come back (S34).

import { roundUp } from './length-classes.js'
import { ITEM_OVERHEAD_BYTES } from './packer.js'
import { NS_PER_MS, type State } from './state.js'
import { SUBMIT_QUEUE_FULL, type SubmitBlock } from './submission.js'

const RETRY_AFTER_MIN_MS = 50
const RETRY_AFTER_MAX_MS = 5000
/** Told while nothing has been dispatched, so that no rate is known. */
const RETRY_AFTER_UNKNOWN_MS = 1000
/** A full queue is refilled in steps of at most this share. */
const REFILL_SHARE = 1 / 8
const DRAIN_WINDOW_NS = 1000 * NS_PER_MS
/** The widest rounding a contract may ask for. */
const ROUND_TO_MAX = 64

export function hasRoom(state: State, length: number): boolean {
  const { waiting, reserved, config } = state
  return (
    waiting.items + reserved.items < config.maxQueuedItems &&
    waiting.tokens + reserved.tokens + length <= config.maxQueuedTokens
  )
}

/** All from `at` on are refused for room. Answers when to come back; 0 when none were. */
export function refuseForRoom(
  state: State,
  block: SubmitBlock,
  codes: Uint8Array,
  at: number,
): number {
  state.refusedLength = at < block.count ? block.lengths[at] : 0
  if (at === block.count) return 0
  codes.fill(SUBMIT_QUEUE_FULL, at)
  state.gate.refusedForRoom = true
  let tokens = 0
  for (let i = at; i < block.count; i++) tokens += block.lengths[i]
  return retryAfterMs(state, block.count - at, tokens)
}

/** The queue is at its limit and a producer waits for it: the last submission does not fit (S13b). */
export function isProducerWaiting(state: State): boolean {
  return state.refusedLength > 0 && !hasRoom(state, state.refusedLength)
}

/** Whether an item could never be queued or sent: told so, rather than to come back for ever. */
export function isTooLarge(
  state: State,
  length: number,
  idBytes: number,
  payload: number,
): boolean {
  const { config } = state
  const tokenBytes = payload > 0 ? 0 : length * 4
  if (tokenBytes + idBytes + payload > config.maxItemBytes) return true
  if (length > config.maxQueuedTokens) return true
  const inBatch = roundUp(length, ROUND_TO_MAX) * 4 + idBytes + payload + ITEM_OVERHEAD_BYTES
  return inBatch > config.maxBatchBytes
}

/** Counts what left the queue, in windows of a second. */
export function noteDrained(state: State, items: number, tokens: number): void {
  rollWindow(state)
  state.drain.items += items
  state.drain.tokens += tokens
}

/**
 * When room for `items` and `tokens` is there at the rate of the last windows, or for an eighth of the
 * queue if that is less: a producer who waited for more would find the queue empty and GPUs idle.
 */
function retryAfterMs(state: State, items: number, tokens: number): number {
  rollWindow(state)
  const { drain, config, now } = state
  const elapsed = now - drain.windowAt + DRAIN_WINDOW_NS
  const drainedItems = drain.items + drain.lastItems
  if (drainedItems === 0) return RETRY_AFTER_UNKNOWN_MS
  const drainedTokens = drain.tokens + drain.lastTokens
  const part = Math.min(
    1,
    (config.maxQueuedItems * REFILL_SHARE) / items,
    (config.maxQueuedTokens * REFILL_SHARE) / tokens,
  )
  const windows = part * Math.max(items / drainedItems, tokens / drainedTokens)
  const ms = Math.ceil((windows * elapsed) / NS_PER_MS)
  return Math.max(RETRY_AFTER_MIN_MS, Math.min(RETRY_AFTER_MAX_MS, ms))
}

function rollWindow(state: State): void {
  const { drain, now } = state
  if (now < drain.windowAt + DRAIN_WINDOW_NS) return
  const isNext = now < drain.windowAt + 2 * DRAIN_WINDOW_NS
  drain.lastItems = isNext ? drain.items : 0
  drain.lastTokens = isNext ? drain.tokens : 0
  drain.items = 0
  drain.tokens = 0
  drain.windowAt = now - (now % DRAIN_WINDOW_NS)
}

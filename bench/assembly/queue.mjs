// A queue of at least 256 MiB in the broker's own item table and arenas, and orders in which a batch
// may draw on it.
import { Cut } from '../../packages/core/dist/cut.js'
import { itemView } from '../../packages/core/dist/item-view.js'
import { Items } from '../../packages/core/dist/items.js'
import { lastCacheBytes } from '../lib/machine.mjs'

export const BATCH_ITEMS = 64
export const ITEM_TOKENS = 256
export const ID_BYTES = 16
export const BATCH_TOKEN_BYTES = BATCH_ITEMS * ITEM_TOKENS * 4
const ITEM_BYTES = ITEM_TOKENS * 4 + ID_BYTES
const BLOCK_ITEMS = 4096
const LANES = 16

/** Twice the last cache, so that no order of reading finds the queue there; at most 1 GiB. */
export function queueBytes() {
  return Math.min(Math.max(256 * 1024 ** 2, 2 * lastCacheBytes()), 1024 ** 3)
}

export function fillQueue() {
  const items = new Items()
  const count = Math.floor(queueBytes() / ITEM_BYTES / (BATCH_ITEMS * LANES)) * BATCH_ITEMS * LANES
  const block = submitBlock()
  const slots = new Int32Array(count)
  let cut
  for (let i = 0; i < count; i++) {
    if (i % BLOCK_ITEMS === 0) cut = new Cut(block)
    cut.next(i % BLOCK_ITEMS)
    const slot = items.alloc()
    items.length.set(slot, ITEM_TOKENS)
    items.store(slot, cut)
    slots[i] = slot
  }
  return { items, view: itemView({ items }), slots }
}

function submitBlock() {
  const tokens = Int32Array.from(
    { length: BLOCK_ITEMS * ITEM_TOKENS },
    (_, i) => (i * 7919) % 30522,
  )
  const ids = new Uint8Array(BLOCK_ITEMS * ID_BYTES).fill(120)
  return {
    tokens,
    ids,
    payloads: null,
    payloadEnds: null,
    model: new Uint32Array(BLOCK_ITEMS),
    lengths: new Int32Array(BLOCK_ITEMS).fill(ITEM_TOKENS),
    idEnds: Uint32Array.from({ length: BLOCK_ITEMS }, (_, i) => (i + 1) * ID_BYTES),
  }
}

/** As sixteen lanes were filled side by side: the items of a batch lie sixteen apart. */
export function laneOrder(slots) {
  const order = new Int32Array(slots.length)
  let at = 0
  for (let lane = 0; lane < LANES; lane++) {
    for (let i = lane; i < slots.length; i += LANES) order[at++] = slots[i]
  }
  return order
}

/** The worst that retries and reclaimed work can do: a batch draws on the whole queue. */
export function scatteredOrder(slots) {
  const order = Int32Array.from(slots)
  let state = 2463534242
  for (let i = order.length - 1; i > 0; i--) {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    const j = (state >>> 0) % (i + 1)
    ;[order[i], order[j]] = [order[j], order[i]]
  }
  return order
}

// A random gather-copy of the queued items: what the bytes alone cost.
import { seeded } from '../lib/random.mjs'

const TARGET_WORDS = 1 << 20

/** @returns a function that copies so many items, from places in random order, into a cycled buffer */
export function gather(view, items) {
  const order = shuffledSlots(items)
  const target = new Int32Array(TARGET_WORDS + (1 << 16))
  let at = 0
  return (count) => {
    let to = 0
    for (let i = 0; i < count; i++) {
      const slot = order[at]
      at = at + 1 === order.length ? 0 : at + 1
      const from = view.tokensOffset(slot) >>> 2
      const words = view.tokensBytes(slot) >>> 2
      copyWords(view.segmentWords(slot), from, words, target, to)
      to = (to + words) % TARGET_WORDS
    }
  }
}

/** As the item table itself copies: a loop is the faster form for items this short. */
function copyWords(source, from, words, target, to) {
  for (let i = 0; i < words; i++) target[to + i] = source[from + i]
}

/** Slots with an item; only read here, never after the queue has moved on. */
function shuffledSlots(items) {
  const random = seeded(2)
  const slots = new Int32Array(items)
  for (let i = 0; i < items; i++) slots[i] = i
  for (let i = items - 1; i > 0; i--) {
    const other = Math.floor(random() * (i + 1))
    const slot = slots[i]
    slots[i] = slots[other]
    slots[other] = slot
  }
  return slots
}

// What every contestant stores: items of 1 KiB (256 tokens) with an id of 15 bytes, made before the
// clock starts, in the form that the contestant takes.
export const ITEM_TOKENS = 256
export const ITEM_BYTES = 4 * ITEM_TOKENS
export const RESULT_BYTES = 64
/** Groups under way at once: what is asked for during a sync shares the next one. */
export const IN_FLIGHT = 4

/**
 * Stored before the clock starts: code that has not run yet is slow, and stores begin with new files. A broker
 * runs for days. With 30,000 Node's compiler is at work still, which makes ours up to 15 % slower.
 */
export const WARM_ITEMS = 100_000

const ID_BYTES = 15

export const idOf = (number) => `item-${String(number).padStart(ID_BYTES - 5, '0')}`

/** Tokens of an item: no two items are the same. */
export function tokensOf(number) {
  const tokens = new Int32Array(ITEM_TOKENS)
  for (let i = 0; i < ITEM_TOKENS; i++) tokens[i] = (number * 31 + i * 7) % 30_522
  return tokens
}

/** First and size of each group of so many items. */
export function groupsOf(first, items, group) {
  const end = first + items
  const groups = []
  for (let at = first; at < end; at += group)
    groups.push({ first: at, count: Math.min(group, end - at) })
  return groups
}

/** Runs `IN_FLIGHT` lanes of `send(group)` over the groups. @returns seconds */
export async function timeGroups(groups, send, lanes = IN_FLIGHT) {
  let next = 0
  const lane = async (which) => {
    while (next < groups.length) await send(groups[next++], which)
  }
  const start = process.hrtime.bigint()
  await Promise.all(Array.from({ length: lanes }, (_, which) => lane(which)))
  return Number(process.hrtime.bigint() - start) / 1e9
}

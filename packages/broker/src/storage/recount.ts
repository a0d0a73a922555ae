// The counts of a job, made anew from the rows of its blocks and its results: when its rows cannot be read, when a
// block is taken out of use, and to check them (`fabric-broker verify`).
import { STATUSES } from '../results/log.js'
import { BlockRow } from './block-row.js'
import { type JobCounter, newJobCounter, shapeName } from './counters.js'
import type { Environment, Table } from './environment.js'
import { jobKey, keyBehind, placeOf, readBig } from './layout.js'
import { decodeChunk, statusAt } from './result-chunk.js'
import type { DiskShapeCounts } from './store.js'

/** Unsettled items and tokens of all blocks whose keys begin so, by shape. */
export function countBlocks(blocks: Table, prefix: Buffer): DiskShapeCounts[] {
  const shapes = new Map<
    string,
    { model: number; paddedLength: number; items: number; tokens: number }
  >()
  for (const { key, value } of blocks.getRange({ start: prefix, end: keyBehind(prefix) })) {
    const row = BlockRow.decode(value)
    if (row === null) continue
    const { model, paddedLength } = placeOf(key)
    const name = shapeName({ model, paddedLength })
    const shape = shapes.get(name) ?? { model, paddedLength, items: 0, tokens: 0 }
    shape.items += row.itemsLeft
    shape.tokens += row.tokensLeft
    shapes.set(name, shape)
  }
  return Array.from(shapes.values())
}

/**
 * Results that were dropped after they were read are taken for completed ones; nothing counts as read
 * beyond them, and what had been lost before is not known any more.
 */
export function recountJob(tables: Environment['tables'], job: number): JobCounter {
  const counter = newJobCounter(job)
  for (const { model, paddedLength, items, tokens } of countBlocks(tables.blocks, jobKey(job))) {
    const shape = { model, paddedLength }
    counter.shapes.set(shapeName(shape), { shape, items, tokens })
    counter.accepted += items
  }
  let isFirst = true
  for (const { key, value } of tables.results.getRange({
    start: jobKey(job),
    end: keyBehind(jobKey(job)),
  })) {
    const chunk = decodeChunk(value)
    if (chunk === null) continue
    if (isFirst) counter.firstOffset = readBig(key, 4)
    isFirst = false
    counter.endOffset = chunk.firstOffset + chunk.count
    for (let i = 0; i < chunk.count; i++) {
      counter[STATUSES[statusAt(chunk.bytes, chunk.starts[i])]] += 1
      counter.unreadBytes += chunk.starts[i + 1] - chunk.starts[i]
    }
  }
  counter.readOffset = counter.firstOffset
  counter.completed += counter.firstOffset
  for (const status of STATUSES) counter.accepted += counter[status]
  return counter
}

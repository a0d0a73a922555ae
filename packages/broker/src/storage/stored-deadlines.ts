// Deadlines of unsettled items, found at a start: the rows say which blocks have some, only those are read.
import { BlockRow } from './block-row.js'
import type { Environment, Table } from './environment.js'
import { decodeBlock } from './item-block.js'
import { placeOf } from './layout.js'
import type { StoredDeadline } from './store.js'

/** By job. A block that cannot be read is met, and set aside, when it is read. */
export function deadlinesIn({ tables, log }: Environment): Map<number, StoredDeadline[]> {
  const byJob = new Map<number, StoredDeadline[]>()
  for (const { key, row } of timedBlocks(tables.blocks)) {
    const bytes = log.read(row.place)
    const block = bytes === null ? null : decodeBlock(bytes)
    if (block === null || block.deadlineMs === null) continue
    const { job, model, paddedLength } = placeOf(key)
    const ofJob = byJob.get(job) ?? []
    byJob.set(job, ofJob)
    for (let i = 0; i < block.count; i++) {
      if (block.deadlineMs[i] === 0 || row.isSettled(i)) continue
      ofJob.push({
        model,
        paddedLength,
        sequence: block.firstSequence + block.sequenceDeltas[i],
        length: block.lengths[i],
        deadlineAtMs: block.acceptedAtMs + block.deadlineMs[i],
      })
    }
  }
  return byJob
}

function timedBlocks(blocks: Table): { readonly key: Buffer; readonly row: BlockRow }[] {
  const found: { readonly key: Buffer; readonly row: BlockRow }[] = []
  for (const { key, value } of blocks.getRange({})) {
    const row = BlockRow.decode(value)
    if (row?.haveDeadline) found.push({ key: Buffer.from(key), row })
  }
  return found
}

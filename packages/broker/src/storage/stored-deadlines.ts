// Deadlines of unsettled items, found at a start: marks say which blocks have some, only those are read.
import { BlockMarks } from './block-marks.js'
import type { Environment, Table } from './environment.js'
import { decodeBlock } from './item-block.js'
import { placeOf } from './layout.js'
import { aligned } from './settling.js'
import type { StoredDeadline } from './store.js'

/** By job. A block that cannot be read is met, and set aside, when it is read. */
export function deadlinesIn(tables: Environment['tables']): Map<number, StoredDeadline[]> {
  const byJob = new Map<number, StoredDeadline[]>()
  for (const { key, marks } of timedBlocks(tables.marks)) {
    const bytes = tables.items.getBinary(key)
    const block = bytes === undefined ? null : decodeBlock(aligned(new Uint8Array(bytes)))
    if (block === null || block.deadlineMs === null) continue
    const { job, model, paddedLength } = placeOf(key)
    const ofJob = byJob.get(job) ?? []
    byJob.set(job, ofJob)
    for (let row = 0; row < block.count; row++) {
      if (block.deadlineMs[row] === 0 || marks.isSettled(row)) continue
      ofJob.push({
        model,
        paddedLength,
        sequence: block.firstSequence + block.sequenceDeltas[row],
        length: block.lengths[row],
        deadlineAtMs: block.acceptedAtMs + block.deadlineMs[row],
      })
    }
  }
  return byJob
}

function timedBlocks(table: Table): { readonly key: Buffer; readonly marks: BlockMarks }[] {
  const found: { readonly key: Buffer; readonly marks: BlockMarks }[] = []
  for (const { key, value } of table.getRange({})) {
    const marks = BlockMarks.decode(value)
    if (marks?.haveDeadline) found.push({ key: Buffer.from(key), marks })
  }
  return found
}

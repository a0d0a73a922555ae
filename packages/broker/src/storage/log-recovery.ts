// Accepted items of the log's tail made ready for the index, as they were when they were admitted.
import type { Logged } from './admitted.js'
import type { IdIndex } from './id-index.js'
import { concatWords } from './id-run.js'
import type { TailItems } from './log-tail.js'

export function loggedOf({ header, blocks, segment, offset }: TailItems, ids: IdIndex): Logged {
  let last = 0
  let accepted = 0
  for (const { firstSequence, sequenceDeltas, count } of blocks) {
    last = Math.max(last, firstSequence + sequenceDeltas[count - 1])
    accepted += count
  }
  const entries = concatWords(
    blocks.map((block, index) => ids.entriesOf(header.blocks[index].shape.model, block)),
  )
  const encoded = { job: header.job, accepted, last, blocks: header.blocks }
  return { entries, encoded, segment, offset }
}

// The log's tail made ready for the index, in pieces of a transaction each: appends as they were when they
// were admitted.
import type { IdIndex } from './id-index.js'
import { concatWords } from './id-run.js'
import type { LogPosition } from './log-position.js'
import { type TailAppend, tailOfLog } from './log-tail.js'
import type { Logged } from './writer.js'

/** Of the log that a start takes into the index with one transaction. */
const PIECE_BYTES = 16 * 2 ** 20

export interface TailPiece {
  readonly logged: readonly Logged[]
  /** Behind the last of them. */
  readonly position: LogPosition
}

/** @param onProblem told what cannot be read and was acknowledged, in words for the operator. */
export function* tailInPieces(
  dataDir: string,
  hashKey: Buffer,
  known: LogPosition,
  ids: IdIndex,
  onProblem: (problem: string) => void,
): Generator<TailPiece> {
  let logged: Logged[] = []
  let bytes = 0
  let position = known
  for (const append of tailOfLog(dataDir, hashKey, known, onProblem)) {
    const { segment, offset, header } = append
    logged.push(loggedOf(append, ids))
    position = { segment, offset: offset + header.bytes }
    bytes += header.bytes
    if (bytes < PIECE_BYTES) continue
    yield { logged, position }
    logged = []
    bytes = 0
  }
  if (logged.length > 0) yield { logged, position }
}

function loggedOf({ header, blocks, segment, offset }: TailAppend, ids: IdIndex): Logged {
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

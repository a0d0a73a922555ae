// Files of the log with nothing left in them are removed, when the index knows all that stands in them.
import type { LogPosition } from './log-position.js'
import type { LogWriter } from './log-writer.js'
import type { Segments } from './segments.js'

/** A smaller segment is written on when all of it is settled: to begin another costs more than its room. */
const DRAINED_BYTES_MIN = 2 ** 20

/**
 * @param position up to where the index knows the log.
 * @returns the removed ones. What cannot be removed is tried again with the next transaction.
 */
export function removeSegments(
  log: LogWriter,
  segments: Segments,
  { segment: known, offset }: LogPosition,
): number[] {
  const isKnown = (segment: number, bytes: number) =>
    segment < known || (segment === known && bytes <= offset)
  const isEmpty = (segment: number, bytes: number) =>
    isKnown(segment, bytes) && segments.left(segment) === null
  const { segment, offset: end } = log.position
  if (!log.isWriting && end >= DRAINED_BYTES_MIN && isEmpty(segment, end)) log.endSegment()
  const open = log.position.segment
  const removed: number[] = []
  for (const [segment, bytes] of [...log.segments()]) {
    if (segment >= open || !isEmpty(segment, bytes)) continue
    try {
      log.remove(segment)
      removed.push(segment)
    } catch {
      return removed
    }
  }
  return removed
}

// Files of the log with nothing left in them are removed, when the index knows all that stands in them.
import type { BlockReader } from './block-reader.js'
import type { LogPosition } from './log-position.js'
import type { LogWriter } from './log-writer.js'
import type { Segments } from './segments.js'

/** A smaller segment is written on when all of it is settled: to begin another costs more than its room. */
const DRAINED_BYTES_MIN = 2 ** 20

export class SegmentRemoval {
  #removed: number[] = []

  constructor(
    readonly log: LogWriter,
    readonly segments: Segments,
    readonly reader: BlockReader,
  ) {}

  /** Those whose files were removed since it was asked. */
  removed(): number[] {
    return this.#removed.splice(0)
  }

  /**
   * What cannot be removed is tried again with the next transaction.
   * @param position up to where the index knows the log.
   */
  run({ segment: known, offset }: LogPosition): void {
    const { log, segments } = this
    const isKnown = (segment: number, bytes: number) =>
      segment < known || (segment === known && bytes <= offset)
    const isEmpty = (segment: number, bytes: number) =>
      isKnown(segment, bytes) && segments.left(segment) === null
    const { segment, offset: end } = log.position
    if (!log.isWriting && end >= DRAINED_BYTES_MIN && isEmpty(segment, end)) log.endSegment()
    const open = log.position.segment
    for (const [segment, bytes] of [...log.segments()]) {
      if (segment >= open || !isEmpty(segment, bytes)) continue
      try {
        log.remove(segment)
      } catch {
        return
      }
      this.reader.forget(segment)
      this.#removed.push(segment)
    }
  }
}

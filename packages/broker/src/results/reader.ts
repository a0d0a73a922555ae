// What the results of a job are to its readers, in memory or on disk.
import type { ResultRecord } from './log.js'

export interface JobResults {
  readonly unreadBytes: number
  /** First offset that can still be read, and the one behind the last. */
  readonly firstOffset: number
  readonly count: number
  /** `offset` may be the end, and is not dropped. */
  open(offset: number): ResultReader
}

/** One reader, going forward from its offset. */
export interface ResultReader {
  /** Of the next record. */
  readonly offset: number
  /** What it has come to was dropped since: there is no reading on. */
  readonly isDropped: boolean
  /**
   * The next records, about `maxBytes` of them and none at or behind `end`; none at the end of what
   * there is. They are borrowed until the next call.
   */
  take(end: number, maxBytes: number): readonly ResultRecord[] | Promise<readonly ResultRecord[]>
  /**
   * All that was taken has arrived, but for its last `inFlightBytes`: it counts as read (S34), as far
   * as readers have had it without a gap. @returns bytes that were unread until now.
   */
  arrived(inFlightBytes: number): number | Promise<number>
}

// A position in the log: a segment and a byte in it.
import type { Table } from './environment.js'
import { META_LOG_POSITION } from './layout.js'

export interface LogPosition {
  readonly segment: number
  readonly offset: number
}

export const LOG_START: LogPosition = { segment: 0, offset: 0 }

/** Whether something stands in the log that begins at `of`, before it. */
export const isBehind = (position: LogPosition, of: LogPosition): boolean =>
  of.segment < position.segment || (of.segment === position.segment && of.offset < position.offset)

/** Up to where the index knows the log. */
export function readLogPosition(meta: Table): LogPosition {
  const row = meta.getBinary(META_LOG_POSITION)
  if (row === undefined) return LOG_START
  return { segment: row.readDoubleLE(0), offset: row.readDoubleLE(8) }
}

/** Within the transaction. */
export function writeLogPosition(meta: Table, { segment, offset }: LogPosition): void {
  const row = Buffer.alloc(16)
  row.writeDoubleLE(segment, 0)
  row.writeDoubleLE(offset, 8)
  meta.put(META_LOG_POSITION, row)
}

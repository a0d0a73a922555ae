// Numbers of the table `meta`, as f64.
import type { Table } from './environment.js'

export const readNumber = (meta: Table, key: Buffer): number | null =>
  meta.getBinary(key)?.readDoubleLE(0) ?? null

/** Within a transaction. */
export function writeNumber(meta: Table, key: Buffer, value: number): void {
  const bytes = Buffer.alloc(8)
  bytes.writeDoubleLE(value)
  meta.put(key, bytes)
}

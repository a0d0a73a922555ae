// What a running broker says about itself, for the commands that show it.
import { FabricError } from '@fabric/protocol'
import type { BrokerState } from '../state.js'

export async function fetchState(broker: string): Promise<BrokerState> {
  try {
    const response = await fetch(new URL('/v1/state', broker))
    return (await response.json()) as BrokerState
  } catch (cause) {
    throw new FabricError('FABRIC_BROKER_UNREACHABLE', `no broker answers at ${broker}`, { cause })
  }
}

/** Columns as wide as their widest cell. */
export function table(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)))
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column]))
      .join('  ')
      .trimEnd(),
  )
}

const MiB = 2 ** 20
const tenths = (value: number) => Math.round(value * 10) / 10

export const inBytes = (bytes: number): string =>
  bytes >= MiB ? `${tenths(bytes / MiB)} MiB` : `${tenths(bytes / 1024)} KiB`

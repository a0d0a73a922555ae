// Which store a broker stands on, by its configuration: disk mode's, the spill of memory mode, or none.
import { join } from 'node:path'
import type { BrokerConfig } from './config/options.js'
import type { openStore } from './storage/open.js'
import type { Store } from './storage/store.js'

/** In a folder of its own, for it is emptied. */
const SPILL_FOLDER = 'fabric-spill'

export function openStoreOf(config: BrokerConfig, open: typeof openStore): Promise<Store | null> {
  const { dataDir, spillDir, maxKeptResultBytes, sync, syncIntervalMs, diskReserveBytes } = config
  const settings = { maxKeptResultBytes, sync, syncIntervalMs, diskReserveBytes }
  if (dataDir !== null) return open(dataDir, settings)
  if (spillDir === null) return Promise.resolve(null)
  return open(join(spillDir, SPILL_FOLDER), { ...settings, sync: 'never' })
}

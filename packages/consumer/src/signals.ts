// SIGTERM and SIGINT: the first drains, a later one ends the process at once. A shell and a supervisor
// may both pass on the same signal, so the same one again at once counts as the first.
import { constants } from 'node:os'
import type { Logger } from './log.js'

/** The same signal twice within this time is one. */
const SAME_SIGNAL_MS = 500
const SIGNALS = ['SIGTERM', 'SIGINT'] as const

/** Listens while `work` goes on. */
export async function withSignals(
  logger: Logger,
  drain: () => void,
  work: Promise<void>,
): Promise<void> {
  let first: { readonly signal: NodeJS.Signals; readonly at: number } | null = null
  const onSignal = (signal: NodeJS.Signals) => {
    const at = performance.now()
    if (first !== null) {
      if (first.signal === signal && at - first.at < SAME_SIGNAL_MS) return
      return process.exit(128 + constants.signals[signal])
    }
    first = { signal, at }
    logger.info({ signal }, 'finishing what is in flight; a second signal ends at once')
    drain()
  }
  for (const signal of SIGNALS) process.on(signal, onSignal)
  try {
    await work
  } finally {
    for (const signal of SIGNALS) process.off(signal, onSignal)
  }
}

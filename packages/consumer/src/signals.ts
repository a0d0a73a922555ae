// SIGTERM and SIGINT: the first drains, the second ends the process at once.
import { constants } from 'node:os'
import type { Logger } from './log.js'

const SIGNALS = ['SIGTERM', 'SIGINT'] as const

/** Listens while `work` goes on. */
export async function withSignals(
  logger: Logger,
  drain: () => void,
  work: Promise<void>,
): Promise<void> {
  let hasCome = false
  const onSignal = (signal: NodeJS.Signals) => {
    if (hasCome) process.exit(128 + constants.signals[signal])
    hasCome = true
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

import { afterEach, expect, test, vi } from 'vitest'
import { withSignals } from '../src/signals.js'
import { recordingLogger } from './support/logger.js'

afterEach(() => vi.restoreAllMocks())

/** The exit codes and drains that the signals led to, one after another. */
async function after(...signals: readonly NodeJS.Signals[]): Promise<(string | number)[]> {
  const seen: (string | number)[] = []
  vi.spyOn(process, 'exit').mockImplementation((code) => {
    seen.push(Number(code))
    return undefined as never
  })
  let finish = () => {}
  const work = new Promise<void>((resolve) => {
    finish = resolve
  })
  const { logger } = recordingLogger()
  const done = withSignals(logger, () => seen.push('drain'), work)
  for (const signal of signals) process.emit(signal, signal)
  finish()
  await done
  return seen
}

test('the first signal drains', async () => {
  expect(await after('SIGTERM')).toEqual(['drain'])
})

test('the same signal twice at once, as supervisors send it, is one', async () => {
  expect(await after('SIGTERM', 'SIGTERM')).toEqual(['drain'])
})

test('another signal ends the process at once', async () => {
  expect(await after('SIGTERM', 'SIGINT')).toEqual(['drain', 130])
})

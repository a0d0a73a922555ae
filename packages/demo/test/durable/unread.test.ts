// Results that nobody reads, with real processes: they stay bounded, the job stalls and `fabric status`
// says why, and it goes on when they are read. In both storage modes.
import { expect, onTestFinished, test } from 'vitest'
import { itemsOf, Plant, until } from './plant.js'

const ITEMS = 4000
const UNREAD_BYTES = 32 * 1024
/** Of one batch in each consumer's hands and one in its channel, when the job is put on hold. */
const IN_FLIGHT_BYTES = 64 * 1024

test.each(['memory', 'disk'])(
  'S34: in %s mode a job whose results nobody reads stalls with a reason that fabric status shows, and goes on when they are read',
  { timeout: 120_000 },
  async (mode) => {
    const plant = new Plant(itemsOf(ITEMS), ['--release-threshold', '1'])
    onTestFinished(() => plant.close())
    plant.brokerFlags.push('--max-unread-result-bytes', String(UNREAD_BYTES))
    if (mode === 'disk') plant.brokerFlags.push('--data-dir', plant.dataDir)
    await plant.prepare()
    plant.spawnBroker()
    await plant.listening()
    plant.spawnConsumer(0)
    const submitting = plant.fabric('submit', plant.input, '--model', '1', '--job', 'nightly')
    const stalled = await until(
      async () => (await plant.state())?.stalledJobs.find(({ id }) => id === 'nightly'),
      'the job stalls',
    )
    expect(stalled.reason).toMatch(/results are unread/)
    expect(stalled.unreadResultBytes).toBeLessThan(UNREAD_BYTES + IN_FLIGHT_BYTES)
    const status = plant.fabric('status')
    expect(await status.exited).toBe(0)
    expect(status.out).toMatch(/stalled +job nightly, [\d,]+ items: .*results are unread/)
    expect((await plant.state())?.items.settled.completed).toBeLessThan(ITEMS)

    const reading = plant.fabric('results', 'nightly', '-o', plant.output)
    expect(await reading.exited, reading.errors).toBe(0)
    expect(await submitting.exited, submitting.errors).toBe(0)
    expect(plant.check()).toEqual({ lines: ITEMS, duplicates: [], lost: [], wrong: [] })
  },
)

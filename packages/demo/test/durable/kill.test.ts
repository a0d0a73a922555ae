// kill -9 of any of the processes of a job, again and again, each started again with its arguments:
// the output has each item's own result exactly once, in whole lines, and nothing else.
import { spawnSync } from 'node:child_process'
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { seededRandom } from '../../src/random.js'
import { itemsOf, Plant, type Program, until } from './plant.js'

const ROUNDS = Number(process.env.FABRIC_KILL_ROUNDS ?? 2)
const ITEMS = Number(process.env.FABRIC_KILL_ITEMS ?? 2000)
const SEED = Number(process.env.FABRIC_SEED ?? 1)
const REPORT = process.env.FABRIC_REPORT
const CONSUMERS = 3
/** A program that is killed so soon has not begun its work. */
const START_MS = 1500
const VERIFY = join(import.meta.dirname, '../../../broker/bin/fabric-broker.js')

type Kind = 'broker' | 'consumers' | 'both' | 'client' | 'all'

/** The moment of a kill: most when more has reached the output, some while programs start. */
async function moment(plant: Plant, random: () => number, stepBytes: number): Promise<void> {
  if (random() < 0.25) {
    const delayMs = random() * START_MS
    await new Promise((resolve) => setTimeout(resolve, delayMs))
    return
  }
  const target = plant.outputBytes() + random() * 2 * stepBytes
  const { client } = plant
  await until(() => plant.outputBytes() > target || !client?.isRunning, 'more output')
}

/** Kills what `kind` says at once, in an order of the seed, and starts it again. */
async function killAndStart(plant: Plant, kind: Kind, random: () => number): Promise<void> {
  const victims: [Program | null, () => Program][] = []
  if (kind !== 'consumers' && kind !== 'client')
    victims.push([plant.broker, () => plant.spawnBroker()])
  if (kind !== 'broker' && kind !== 'client')
    plant.consumers.forEach((consumer, index) => {
      // One at least, at times all.
      if (index === 0 || random() < 0.5) victims.push([consumer, () => plant.spawnConsumer(index)])
    })
  if (kind === 'client' || kind === 'all') victims.push([plant.client, () => plant.spawnClient()])
  if (random() < 0.5) victims.reverse()
  const ended = victims.map(([program]) => program?.kill())
  await Promise.all(ended)
  for (const [, start] of victims) {
    start()
    plant.restarts += 1
  }
}

/**
 * The client's end. Killed when it had just finished, it is started as for the first time, and such a
 * start does not wait for a broker that is not there yet: it is started again, as its user would.
 */
async function untilDone(plant: Plant): Promise<void> {
  let exit = await plant.client?.exited
  if (exit === 1 && plant.client?.errors.includes('FABRIC_BROKER_UNREACHABLE')) {
    await plant.listening()
    exit = await plant.spawnClient().exited
  }
  expect(exit, `${plant.client?.errors}\nbroker: ${plant.broker?.errors.slice(-2000)}`).toBe(0)
}

test.each<Kind>(['broker', 'consumers', 'both', 'client', 'all'])(
  `kill -9 of %s at up to ${ROUNDS} random moments of a job: each item has exactly one result, its own (seed ${SEED})`,
  { timeout: 120_000 + ROUNDS * 30_000 },
  async (kind) => {
    const flags = ['--release-threshold', '1', '--max-deliveries', '65535']
    const plant = new Plant(itemsOf(ITEMS), flags)
    onTestFinished(() => plant.close())
    plant.brokerFlags.push('--data-dir', plant.dataDir)
    await plant.prepare()
    const random = seededRandom(SEED + kind.length)
    plant.spawnBroker()
    for (let index = 0; index < CONSUMERS; index++) plant.spawnConsumer(index)
    await plant.listening()
    plant.spawnClient()
    // At its very first start a client without a broker ends, rather than wait for a mistyped address.
    await until(async () => (await plant.state())?.items.accepted, 'the first items are accepted')
    // Small enough that the job does not end before the last kill, as it does at an unlucky rate.
    const stepBytes = (ITEMS * 70) / (1.4 * ROUNDS + 1)
    let rounds = 0
    while (rounds < ROUNDS) {
      await moment(plant, random, stepBytes)
      if (!plant.client?.isRunning) break
      await killAndStart(plant, kind, random)
      rounds += 1
    }
    await untilDone(plant)
    const { lines, duplicates, lost, wrong } = plant.check()
    const line = `kill -9 of ${kind}: seed ${SEED}, ${rounds} rounds, ${plant.restarts} restarts, ${ITEMS} items, ${lines} results, duplicates ${duplicates}, lost ${lost}, wrong ${wrong.length}`
    if (REPORT !== undefined) appendFileSync(REPORT, `${line}\n`)
    expect(wrong.slice(0, 5)).toEqual([])
    expect({ lines, duplicates, lost }, line).toEqual({ lines: ITEMS, duplicates: 0, lost: 0 })
    // The last kill may have come when the client had all it needed: then the broker only just starts.
    await plant.listening()
    expect((await plant.state())?.items.waiting).toBe(0)
    await plant.broker?.kill()
    const verified = spawnSync(process.execPath, [VERIFY, 'verify', '--data-dir', plant.dataDir], {
      encoding: 'utf8',
    })
    expect(verified.status, verified.stdout + verified.stderr).toBe(0)
  },
)

// kill -9 of any of the processes of a job, again and again, each started again with its arguments:
// the output has each item's own result exactly once, in whole lines, and nothing else. All kills fall
// within one job. FABRIC_KILL_ROUNDS, FABRIC_KILL_ITEMS and FABRIC_KILL_KINDS for more.
import { spawnSync } from 'node:child_process'
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { seededRandom } from '../../src/random.js'
import { type Job, Moments, OCCASIONS, type Occasion } from './moments.js'
import { itemsOf, Plant, type Program, until } from './plant.js'
import { Throttle } from './throttle.js'

const ROUNDS = Number(process.env.FABRIC_KILL_ROUNDS ?? 2)
const ITEMS = Number(process.env.FABRIC_KILL_ITEMS ?? 2000)
const SEED = Number(process.env.FABRIC_SEED ?? 1)
const REPORT = process.env.FABRIC_REPORT
const CONSUMERS = 3
/** A quarter: items wait in numbers, and the client appends during three quarters of the job. At least a request. */
const QUEUED_MAX = Math.max(1000, Math.ceil(ITEMS / 4))
const END_DEADLINE_MS = 120_000
const TOLD_IDS_MAX = 20
const EXITED_WELL = 'exit code 0'
const VERIFY = join(import.meta.dirname, '../../../broker/bin/fabric-broker.js')

const ALL_KINDS = ['broker', 'consumers', 'both', 'client', 'all'] as const
type Kind = (typeof ALL_KINDS)[number]
const wanted: readonly string[] = process.env.FABRIC_KILL_KINDS?.split(',') ?? ALL_KINDS
const KINDS = ALL_KINDS.filter((kind) => wanted.includes(kind))

/** Kills what `kind` says at once, in an order of the seed, and starts it again. @returns how many. */
async function killAndStart(plant: Plant, kind: Kind, random: () => number): Promise<number> {
  const victims: [Program | null, () => Program][] = []
  if (kind !== 'consumers' && kind !== 'client')
    victims.push([plant.broker, () => plant.spawnBroker()])
  if (kind !== 'broker' && kind !== 'client') {
    // One at least, at times all.
    const first = Math.floor(random() * CONSUMERS)
    plant.consumers.forEach((consumer, index) => {
      const isVictim = random() < 0.5
      if (index === first || isVictim) victims.push([consumer, () => plant.spawnConsumer(index)])
    })
  }
  if (kind === 'client' || kind === 'all') victims.push([plant.client, () => plant.spawnClient()])
  if (random() < 0.5) victims.reverse()
  const ends = await Promise.all(victims.map(([program]) => program?.kill()))
  const names = victims.map(([program]) => program?.name)
  expect(ends, `what ended ${names}`).toEqual(names.map(() => 'SIGKILL'))
  for (const [, start] of victims) start()
  return victims.length
}

async function begin(job: Job): Promise<void> {
  const { plant } = job
  await plant.prepare()
  plant.spawnBroker()
  for (let index = 0; index < CONSUMERS; index++) plant.spawnConsumer(index)
  await plant.listening()
  plant.spawnClient()
  // At its very first start a client without a broker ends, rather than wait for a mistyped address.
  await until(async () => (await plant.state())?.items.accepted, 'the first items are accepted')
}

interface Kills {
  readonly rounds: number
  readonly killed: number
  readonly by: Readonly<Record<Occasion, number>>
  /** At the last kill: more results than these there cannot have been, nor fewer than the output held. */
  readonly done: number
  readonly lines: number
}

async function killAll(job: Job, kind: Kind): Promise<Kills> {
  const { plant, throttle, random } = job
  const moments = new Moments(job)
  const by = { start: 0, append: 0, work: 0, output: 0, quiet: 0 }
  let [rounds, killed, done, lines] = [0, 0, 0, 0]
  while (rounds < job.rounds) {
    by[await moments.next(rounds + 1)] += 1
    killed += await killAndStart(plant, kind, random)
    rounds += 1
    // Consumers that live go on meanwhile, so these may be more than at the kill.
    done = throttle.distinct
    lines = plant.results.lines
    expect(done, `items done at kill ${rounds}: the job may be over`).toBeLessThan(ITEMS)
  }
  return { rounds, killed, by, done, lines }
}

/** One that is stuck is no reason not to tell what is lost. */
async function clientsEnd({ plant }: Job): Promise<string> {
  const { client } = plant
  await until(() => !client?.isRunning, "the client's end", END_DEADLINE_MS).catch(() => {})
  if (client?.isRunning) return `still runs after ${END_DEADLINE_MS / 1000} s: ${client.errors}`
  const exit = await client?.exited
  return exit === 0 ? EXITED_WELL : `exit code ${exit}: ${client?.errors}`
}

const told = (ids: readonly string[], more: (id: string) => string): string => {
  const some = ids.slice(0, TOLD_IDS_MAX).map((id) => `${id}${more(id)}`)
  const rest = ids.length > some.length ? `, ${ids.length - some.length} more` : ''
  return ids.length === 0 ? '0' : `${ids.length} (${some.join(', ')}${rest})`
}

/** What the output holds, beside the input. */
function compare({ plant, throttle }: Job, end: string): { found: string; isRight: boolean } {
  const { lines, duplicates, lost, wrong } = plant.check()
  const times = (id: string) => ` done ${throttle.timesOf(id)} times`
  return {
    found: `${ITEMS} items, ${lines} results, duplicates ${told(duplicates, times)}, lost ${told(lost, times)}, wrong ${told(wrong, () => '')}, executions ${throttle.executions}, client ${end}`,
    isRight:
      lines === ITEMS &&
      duplicates.length + lost.length + wrong.length === 0 &&
      end === EXITED_WELL,
  }
}

async function verify({ plant }: Job): Promise<void> {
  expect((await plant.state())?.items.waiting).toBe(0)
  await plant.broker?.kill()
  const verified = spawnSync(process.execPath, [VERIFY, 'verify', '--data-dir', plant.dataDir], {
    encoding: 'utf8',
  })
  expect(verified.status, verified.stdout + verified.stderr).toBe(0)
}

async function play(job: Job, kind: Kind): Promise<string> {
  const startedAt = performance.now()
  await begin(job)
  const kills = await killAll(job, kind).catch((error: Error) => error)
  // A plant that stands still may have lost what it waits for: that is known when nothing holds the rest.
  if (kills instanceof Error && job.plant.ended.length > 0) throw kills
  // What was lost in kills is done again, so more often than there are items.
  job.throttle.allow(ITEMS * 100)
  const { found, isRight } = compare(job, await clientsEnd(job))
  if (kills instanceof Error) throw new Error(`${kills.message}; without further kills: ${found}`)
  const { rounds, killed, by, done, lines } = kills
  if (!isRight) throw new Error(`after ${rounds} rounds: ${found}`)
  expect(rounds).toBe(ROUNDS)
  await verify(job)
  const moments = OCCASIONS.map((occasion) => `${by[occasion]} by ${occasion}`).join(', ')
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(0)
  return `${rounds} rounds of ${ROUNDS} within the job (${moments}; at the last ${lines} results in the output, ${done} items done), ${killed} processes killed; ${found}; ${seconds} s`
}

const report = (line: string) => {
  if (REPORT !== undefined) appendFileSync(REPORT, `${line}\n`)
}

test.each(KINDS)(
  `kill -9 of %s at ${ROUNDS} random moments of a job: each item has exactly one result, its own (seed ${SEED})`,
  { timeout: 300_000 + ROUNDS * 30_000 },
  async (kind) => {
    // The deaths are not the items' fault: none of them may end in quarantine.
    const flags = ['--release-threshold', '1', '--max-deliveries', '65535', '--poison-deaths', '16']
    const plant = new Plant(itemsOf(ITEMS), [...flags, '--max-queued-items', String(QUEUED_MAX)])
    plant.brokerFlags.push('--data-dir', plant.dataDir)
    const throttle = new Throttle(plant.folder)
    plant.environment = throttle.environment
    let failed = true
    onTestFinished(() => plant.close({ keep: failed }))
    const random = seededRandom(SEED * ALL_KINDS.length + ALL_KINDS.indexOf(kind))
    const what = `kill -9 of ${kind}: seed ${SEED}, `
    try {
      report(
        what +
          (await play({ plant, throttle, rounds: ROUNDS, queuedMax: QUEUED_MAX, random }, kind)),
      )
      failed = false
    } catch (error) {
      const state = JSON.stringify((await plant.state())?.items ?? 'no broker answers')
      const cause = error instanceof Error ? error.message : String(error)
      const line = `${what}FAILED: ${cause}\n${throttle.distinct} items done, ${plant.results.lines} in the output, the broker's items: ${state}\nall is kept in ${plant.folder}: data, out.jsonl, programs.log`
      report(line)
      throw new Error(line, { cause: error })
    }
  },
)

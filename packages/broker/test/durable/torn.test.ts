// Power cuts and disks that lie, below the store: the data folder as they would leave it. What was
// acknowledged is there, or the damage is told; no item has two results or another's.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { appendFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import type { Store } from '../../src/storage/store.ts'
import { folderInMemory, store } from '../storage/support/folder.ts'
import { blockOf, item, job, settled, type TestItem } from '../storage/support/items.ts'
import { Random } from '../storage/support/random.ts'
import {
  afterLoss,
  type Files,
  filesOf,
  LOSSES,
  type Loss,
  writeFiles,
} from '../storage/support/torn.ts'

const ROUNDS = Number(process.env.FABRIC_TORN_ROUNDS ?? 16)
const SEED = Number(process.env.FABRIC_SEED ?? 1)
const REPORT = process.env.FABRIC_REPORT
const READ_ALL = fileURLToPath(new URL('../storage/support/read-all.mjs', import.meta.url))
const COMMAND = fileURLToPath(new URL('../../bin/fabric-broker.js', import.meta.url))

interface Known {
  readonly waiting: ReadonlyMap<string, number>
  readonly settled: ReadonlySet<string>
}

interface Found {
  readonly error?: string
  readonly message?: string
  readonly waiting?: string[]
  readonly results?: [string, string][]
  readonly problems: string[]
}

/** A store under random appends and settlements; what was acknowledged, and the files as of then. */
class History {
  sequence = 0
  known: Known = { waiting: new Map(), settled: new Set() }

  constructor(
    readonly one: Store,
    readonly dataDir: string,
    readonly random: Random,
  ) {}

  /** Often all of the log is in the index, now and then its last appends are not yet. */
  async files(): Promise<Files> {
    if (this.random.chance(0.7)) await this.one.find(0)
    return filesOf(this.dataDir)
  }

  async step(): Promise<void> {
    if (this.random.chance(0.5) || this.known.waiting.size === 0) await this.#append()
    else await this.#settle()
  }

  async #append(): Promise<void> {
    const first = this.sequence + 1
    const items = Array.from({ length: 1 + this.random.below(120) }, (_, i) =>
      item(`i${first + i}`, lengthOf(first + i)),
    )
    this.sequence += items.length
    const sequences = Float64Array.from(items, (_, i) => first + i)
    await this.one.append({ job: 1, block: blockOf(1, items), sequences, acceptedAtMs: 0 })
    const waiting = new Map(this.known.waiting)
    items.forEach(({ id }, i) => {
      waiting.set(id, first + i)
    })
    this.known = { ...this.known, waiting }
  }

  async #settle(): Promise<void> {
    const waiting = new Map(this.known.waiting)
    const done = new Set(this.known.settled)
    const chosen = [...waiting].filter(() => this.random.chance(0.4)).slice(0, 100)
    const all: [number, TestItem][] = chosen.map(([id, sequence]) => [
      sequence,
      item(id, lengthOf(sequence)),
    ])
    await this.one.settle(
      all.map(([sequence, each]) => settled(1, sequence, each, `of ${each.id}`)),
    )
    for (const [id] of chosen) {
      waiting.delete(id)
      done.add(id)
    }
    this.known = { waiting, settled: done }
  }
}

const lengthOf = (sequence: number) => 1 + (sequence % 24)

const same = (known: Known, { waiting, results }: Found) =>
  waiting?.length === known.waiting.size &&
  results?.length === known.settled.size &&
  waiting.every((id) => known.waiting.has(id)) &&
  results.every(([id]) => known.settled.has(id))

/** What is wrong whatever the disk did. */
function falsehoods({ results = [] }: Found): string[] {
  const wrong = results
    .filter(([id, value]) => value !== `of ${id}`)
    .map(([id]) => `value of ${id}`)
  const ids = results.map(([id]) => id)
  if (new Set(ids).size !== ids.length) wrong.push('two results of one item')
  return wrong
}

/** Opens and reads folders in a process of its own, a new one when it died of what it read. */
class ReadingProcess {
  #child: ChildProcess | null = null
  #lines: AsyncIterator<string> | null = null
  #errors = ''

  /** What was found, or the last words of the process. */
  async read(dataDir: string): Promise<Found | string> {
    if (this.#child === null || this.#lines === null) this.#start()
    this.#child?.stdin?.write(`${dataDir}\n`)
    const { value, done } = await this.#lines!.next()
    if (!done) return JSON.parse(value)
    this.#child = null
    return this.#errors.slice(-300) || 'it died without a word'
  }

  #start(): void {
    this.#errors = ''
    this.#child = spawn(process.execPath, [READ_ALL])
    this.#child.stderr!.on('data', (text) => {
      this.#errors += text
    })
    this.#lines = createInterface({ input: this.#child.stdout! })[Symbol.asyncIterator]()
  }

  close(): void {
    this.#child?.kill()
  }
}

/** What `fabric-broker verify` says of a folder. */
function verify(files: Files): 'in order' | 'damage told' {
  const dataDir = join(folderInMemory(), 'data')
  writeFiles(dataDir, files)
  const { status } = spawnSync(process.execPath, [COMMAND, 'verify', '--data-dir', dataDir])
  return status === 0 ? 'in order' : 'damage told'
}

interface Outcome {
  readonly outcome: string
  readonly problem: string | null
}

/**
 * What was found of two states, the first of which was acknowledged and synced. An append whose bytes all
 * reached the disk is there, whether its sync had returned or not.
 */
function judge(loss: Loss, found: Found | string, files: Files, states: readonly Known[]): Outcome {
  const which = typeof found === 'string' ? -1 : states.findIndex((known) => same(known, found))
  const wrong = typeof found === 'string' ? [] : falsehoods(found)
  const isWhole = typeof found !== 'string' && found.problems.length === 0 && wrong.length === 0
  const outcome = which === 0 ? 'state before' : 'state after'
  if (isWhole && which >= 0) return { outcome, problem: null }
  const problem = `${wrong} ${typeof found === 'string' ? found : `${found.error} ${found.message} ${found.problems}`}`
  // A disk that keeps its promise leaves nothing but one of the two.
  if (loss !== 'lied' || wrong.length > 0) return { outcome: 'broken', problem }
  const isTold =
    typeof found !== 'string' &&
    (found.error === 'FABRIC_STORE_DAMAGED' || found.problems.length > 0)
  if (isTold) return { outcome: 'damage told by the start', problem: null }
  const isFound = verify(files) === 'damage told'
  return { outcome: 'damage told by verify', problem: isFound ? null : problem }
}

test(`a disk that lost writes at ${ROUNDS} moments: what was acknowledged is there or its damage told, no result is wrong (seed ${SEED})`, {
  timeout: 60_000 + ROUNDS * 5000,
}, async () => {
  const dataDir = folderInMemory()
  const one = await store(dataDir)
  await one.createJob(job(1))
  const random = new Random(SEED)
  const history = new History(one, dataDir, random)
  const counts = new Map<string, number>()
  const broken: string[] = []
  const all = folderInMemory()
  const reading = new ReadingProcess()
  onTestFinished(() => reading.close())
  for (let round = 0; round < ROUNDS; round++) {
    const skipped = random.below(4)
    for (let i = 0; i < skipped; i++) await history.step()
    const [before, known] = [await history.files(), history.known]
    await history.step()
    const loss = LOSSES[round % LOSSES.length]
    const chance = new Random(SEED * 65_536 + round)
    const files = afterLoss(loss, before, filesOf(dataDir), chance)
    const torn = join(all, `${round}`)
    writeFiles(torn, files)
    const found = await reading.read(torn)
    const { outcome, problem } = judge(loss, found, files, [known, history.known])
    const name = `${loss}: ${outcome}`
    counts.set(name, (counts.get(name) ?? 0) + 1)
    if (problem !== null) broken.push(`round ${round}, ${loss}: ${problem}`)
    rmSync(torn, { recursive: true, force: true })
  }
  const told = [...counts].sort().map(([name, count]) => `${name} ${count}`)
  const line = `lost writes: seed ${SEED}, ${ROUNDS} rounds, ${history.sequence} items; ${told.join(', ')}; broken promises ${broken.length}`
  if (REPORT !== undefined) appendFileSync(REPORT, `${line}\n`)
  expect(broken, line).toEqual([])
})

// The full check of a data folder: every block and its row, page of ids and chunk of results is read, and
// the counts are compared with them. It changes nothing and needs no broker.
import { BlockRow } from './block-row.js'
import { decodeRow, JOB_FIELDS, type JobCounter, shapeName } from './counters.js'
import type { Environment } from './environment.js'
import { decodePage, ENTRY_WORDS, Filter } from './id-run.js'
import { decodeBlock } from './item-block.js'
import { decodeJob } from './job-row.js'
import { diskLength, jobKey, META_HASH_KEY, placeOf, readBig, shapeKey, TABLES } from './layout.js'
import { recountJob } from './recount.js'
import { decodeChunk } from './result-chunk.js'
import { foreignSegment, isOurs, segmentPath, segmentsIn } from './segment-file.js'
import { countSegments, missingSegment } from './segments.js'
import { tailOf } from './tail-of-job.js'

/** More of them say nothing more. */
const PROBLEMS_MAX = 1000

export interface StoreReport {
  readonly jobs: number
  readonly deletedJobs: number
  readonly blocks: number
  /** Unsettled ones. */
  readonly items: number
  readonly ids: number
  readonly results: number
  readonly setAside: number
  readonly problems: readonly string[]
}

class Check {
  readonly problems: string[] = []
  readonly jobs = new Set<number>()
  readonly deleted = new Set<number>()
  blocks = 0
  items = 0
  ids = 0
  results = 0

  readonly #unread: { readonly name: string; readonly key: Buffer; readonly value: Buffer }[] = []

  constructor(readonly environment: Environment) {}

  get tables(): Environment['tables'] {
    return this.environment.tables
  }

  problem(text: string): void {
    if (this.problems.length < PROBLEMS_MAX) this.problems.push(text)
  }

  readJobs(): void {
    for (const { key, value } of this.tables.jobs.getRange({})) {
      const number = key.readUInt32BE(0)
      const job = decodeJob(value)
      if (job === 'damaged') this.problem(`job ${number}: its row is damaged`)
      else if (job === null) this.deleted.add(number)
      else if (job.number !== number) this.problem(`job ${number}: its row says ${job.number}`)
      if (job !== null) this.jobs.add(number)
    }
  }

  /** Rows of deleted jobs are on their way out; of unknown ones nobody knows. */
  isKnown(job: number, what: string): boolean {
    if (!this.jobs.has(job) && !this.deleted.has(job)) this.problem(`${what}: no job ${job}`)
    return this.jobs.has(job)
  }

  readBlocks(): void {
    for (const { key, value } of this.environment.tables.blocks.getRange({})) {
      const { job, model, paddedLength, firstSequence } = placeOf(key)
      const name = `block of job ${job}, model ${model}, length ${paddedLength}, from ${firstSequence}`
      if (!this.isKnown(job, name)) continue
      this.blocks += 1
      const row = BlockRow.decode(value)
      if (row === null) {
        this.problem(`${name}: its row is damaged`)
        continue
      }
      this.items += row.itemsLeft
      const bytes = this.environment.log.read(row.place)
      const block = bytes === null ? null : decodeBlock(bytes)
      if (block === null) {
        this.#unread.push({ name, key: Buffer.from(key), value: Buffer.from(value) })
        continue
      }
      if (block.firstSequence !== firstSequence || block.count !== row.count)
        this.problem(`${name}: holds another block`)
      if (block.lengths.some((length) => diskLength(length) !== paddedLength))
        this.problem(`${name}: holds items of another length`)
      let tokens = 0
      for (let i = 0; i < block.count; i++) if (!row.isSettled(i)) tokens += block.lengths[i]
      if (row.settledBits() !== row.count - row.itemsLeft || tokens !== row.tokensLeft)
        this.problem(`${name}: its marks do not add up`)
      if (row.itemsLeft === 0) this.problem(`${name}: all is settled and it is still there`)
    }
  }

  /** A broker that has the folder open may have moved or settled them since their rows were read. */
  tellUnread(): void {
    const { root, tables } = this.environment
    root.resetReadTxn()
    for (const { name, key, value } of this.#unread)
      if (tables.blocks.getBinary(key)?.equals(value)) this.problem(`${name}: damaged`)
  }

  compareSegments(): void {
    const { dataDir, tables } = this.environment
    const { segments, blocks, meta } = tables
    const hashKey = Buffer.from(meta.getBinary(META_HASH_KEY) ?? [])
    const there = new Set<number>()
    for (const file of segmentsIn(dataDir)) {
      if (isOurs(dataDir, file, hashKey)) there.add(file.segment)
      else this.problem(foreignSegment(segmentPath(dataDir, file.segment)))
    }
    const found = countSegments(blocks)
    for (const { key, value } of segments.getRange({})) {
      const segment = key.readUInt32BE(0)
      const [left, bytes] = decodeRow(value, 2) ?? [-1, -1]
      if (!there.has(segment)) this.problem(missingSegment(segment))
      const counted = found.get(segment) ?? { blocks: 0, bytes: 0 }
      found.delete(segment)
      if (left !== counted.blocks || bytes !== counted.bytes)
        this.problem(`segment ${segment}: its counts do not add up`)
    }
    for (const segment of found.keys()) this.problem(`segment ${segment}: its counts are missing`)
  }

  /** What the next start takes into the index. */
  readTail(): void {
    for (const append of tailOf(this.environment, (problem) => this.problem(problem))) {
      if (append.kind === 'settled') {
        this.results += append.columns.sequences.length
        this.items -= append.columns.models.filter((model) => model >= 0).length
        continue
      }
      const { header, blocks } = append
      if (!this.isKnown(header.job, `accepted items of job ${header.job}`)) continue
      this.blocks += blocks.length
      for (const { count } of blocks) {
        this.items += count
        this.ids += count
      }
    }
  }

  readIds(): void {
    const { ids, filters } = this.tables
    const pagesOfRuns = new Map<string, number>()
    for (const { key, value } of ids.getRange({})) {
      const job = key.readUInt32BE(0)
      const name = `ids of job ${job}, level ${key[4]}, run ${readBig(key, 5)}, page ${key.readUInt32BE(13)}`
      if (!this.isKnown(job, name)) continue
      const page = decodePage(value)
      if (page === null) this.problem(`${name}: damaged`)
      const run = key.toString('latin1', 0, 13)
      pagesOfRuns.set(run, (pagesOfRuns.get(run) ?? 0) + 1)
      // Pages of a merge that was broken off have no filter and count for nothing.
      const isInUse = key[4] === 0 || filters.getBinary(key.subarray(0, 13)) !== undefined
      if (page !== null && isInUse) this.ids += page.length / ENTRY_WORDS
    }
    for (const { key, value } of filters.getRange({})) {
      const job = key.readUInt32BE(0)
      const name = `filter of ids of job ${job}, level ${key[4]}, run ${readBig(key, 5)}`
      if (!this.isKnown(job, name)) continue
      const filter = Filter.decode(value)
      if (filter === null) this.problem(`${name}: damaged`)
      else if (pagesOfRuns.get(key.toString('latin1')) !== filter.pages)
        this.problem(`${name}: pages of the run are missing`)
    }
  }

  readResults(): void {
    let last = { job: -1, end: 0 }
    for (const { key, value } of this.tables.results.getRange({})) {
      const job = key.readUInt32BE(0)
      const offset = readBig(key, 4)
      const name = `results of job ${job} from offset ${offset}`
      if (!this.isKnown(job, name)) continue
      const chunk = decodeChunk(value)
      if (chunk === null) {
        this.problem(`${name}: damaged`)
        continue
      }
      if (chunk.firstOffset !== offset) this.problem(`${name}: holds another chunk`)
      if (last.job === job && last.end !== offset)
        this.problem(`${name}: results ${last.end} to ${offset} are missing`)
      last = { job, end: offset + chunk.count }
      this.results += chunk.count
    }
  }

  compareCounts(): void {
    for (const job of this.jobs) {
      const row = this.tables.counters.getBinary(jobKey(job))
      const numbers = row === undefined ? null : decodeRow(row, JOB_FIELDS.length)
      if (numbers === null) {
        this.problem(`counts of job ${job}: ${row === undefined ? 'missing' : 'damaged'}`)
        continue
      }
      const kept = Object.fromEntries(
        JOB_FIELDS.map((field, index) => [field, numbers[index]]),
      ) as Record<(typeof JOB_FIELDS)[number], number>
      this.#compareJob(job, kept, recountJob(this.tables, job))
    }
  }

  #compareJob(
    job: number,
    kept: Readonly<Record<(typeof JOB_FIELDS)[number], number>>,
    found: JobCounter,
  ): void {
    const compare = (what: string, counted: number, there: number) => {
      if (counted !== there)
        this.problem(`job ${job}: counts say ${counted} ${what}, there are ${there}`)
    }
    let left = 0
    for (const { shape, items, tokens } of found.shapes.values()) {
      const row = this.tables.counters.getBinary(shapeKey(job, shape))
      const [countedItems, countedTokens] = (row && decodeRow(row, 2)) || [0, 0]
      compare(`items of shape ${shapeName(shape)}`, countedItems, items)
      compare(`tokens of shape ${shapeName(shape)}`, countedTokens, tokens)
      left += items
    }
    const { completed, failed, expired, cancelled, quarantined, lost } = kept
    const settled = completed + failed + expired + cancelled + quarantined
    compare('accepted items', kept.accepted, settled + lost + left)
    if (found.endOffset > 0) compare('results', kept.endOffset, found.endOffset)
    if (found.endOffset > 0) compare('as first result', kept.firstOffset, found.firstOffset)
    const bytes = kept.unreadBytes + kept.keptBytes
    if (kept.firstOffset === found.firstOffset)
      compare('bytes of results', bytes, found.unreadBytes)
  }
}

export function checkStore(environment: Environment): StoreReport {
  const { tables } = environment
  const check = new Check(environment)
  check.readJobs()
  check.readTail()
  check.readBlocks()
  check.compareSegments()
  check.readIds()
  check.readResults()
  check.compareCounts()
  let setAside = 0
  for (const key of tables.quarantine.getKeys({})) {
    setAside += 1
    check.problem(
      `set aside earlier: a row of ${TABLES[key[0]] ?? '?'} (${Buffer.from(key).toString('hex', 1)})`,
    )
  }
  check.tellUnread()
  return {
    jobs: check.jobs.size,
    deletedJobs: check.deleted.size,
    blocks: check.blocks,
    items: check.items,
    ids: check.ids,
    results: check.results,
    setAside,
    problems: check.problems,
  }
}

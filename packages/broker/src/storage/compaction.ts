// Segments of which little is left are emptied: their blocks are written to the log again, as an append of
// kind 'moved', and their rows then name the new place. The file goes when nothing is left in it, as any
// other (segment-removal.ts). Runs in the writing thread, a step at a time; what a step has found goes
// through the log's queue, and a transaction of the index takes it in.
//
// Until that transaction a row names the old place, where the block still stands; a copy whose transaction
// never came is not counted as left. What a block's marks are is looked at within the transaction alone:
// its items are settled meanwhile as if nothing moved.
import { align8, appendHeaderBytes, type LoggedBlock } from './append-header.js'
import { type BlockPlace, BlockRow } from './block-row.js'
import type { Environment } from './environment.js'
import { checksumOf, decodeBlock } from './item-block.js'
import { blockKey } from './layout.js'
import type { LogPosition } from './log-position.js'
import type { LogWriter, WritableAppend } from './log-writer.js'
import { type AppendPlace, SegmentScan } from './segment-scan.js'
import type { Segments } from './segments.js'

/** What is left of a file that is emptied, at most: each byte that is copied gives three back or more. */
const SHARE_LEFT_MAX = 1 / 4
/** Files take so many segments more than what is left in them before any is emptied: a small store never does it. */
const SPARE_SEGMENTS = 4
/** Beyond it moves do not wait until nobody else writes to the log. */
const SPARE_SEGMENTS_MAX = 2 * SPARE_SEGMENTS
/**
 * A step moves one part in so many of a segment, 512 KiB. With a step beside each write, of 2 MiB at most,
 * files are emptied as fast as they are filled.
 */
const STEPS_PER_SEGMENT = 128
/** A step waits for the disk so often at most. */
const READS_PER_STEP = 64

interface FoundBlock {
  readonly job: number
  readonly block: LoggedBlock
  readonly place: BlockPlace
  readonly bytes: Uint8Array
}

/** Blocks of one job on their way. */
export interface Move {
  readonly append: WritableAppend
  readonly blocks: readonly {
    readonly key: Buffer
    readonly from: BlockPlace
    /** From the begin of the append. */
    readonly at: number
  }[]
}

interface Emptying {
  readonly scan: SegmentScan
  readonly blocks: Generator<FoundBlock | null>
}

export class Compaction {
  #emptying: Emptying | null = null
  /** All that could be moved was: what is left in them cannot be read. */
  readonly #done = new Set<number>()
  /** In the log and not in the index. */
  #written: { readonly move: Move; readonly start: LogPosition }[] = []
  /** The files beyond what is left in them, as of the last transaction. */
  #spareBytes = 0
  #known: LogPosition = { segment: 0, offset: 0 }
  /** Since the last transaction none was found that is to be emptied. */
  #hasNone = false

  constructor(
    readonly environment: Pick<Environment, 'tables' | 'log'>,
    readonly log: LogWriter,
    readonly segments: Segments,
    readonly isJob: (job: number) => boolean,
  ) {}

  /** @param isBusy others wait for the log. */
  isDue(isBusy: boolean): boolean {
    const mayDelay = this.#spareBytes <= SPARE_SEGMENTS_MAX * this.log.segmentBytesMax
    return (this.#emptying !== null || this.#mayBegin) && !(isBusy && mayDelay)
  }

  /** Unless one block is larger. */
  get stepBytes(): number {
    return this.log.segmentBytesMax / STEPS_PER_SEGMENT
  }

  /** What was moved last has its effect before another segment is chosen. */
  get #mayBegin(): boolean {
    const spare = SPARE_SEGMENTS * this.log.segmentBytesMax
    return !this.#hasNone && this.#written.length === 0 && this.#spareBytes > spare
  }

  /** The next blocks that are to be written to the log, where none of an earlier step are under way. */
  step(): Move[] {
    this.#emptying ??= this.#begin()
    return this.#emptying === null ? [] : movesOf(this.#find(this.#emptying))
  }

  /** A move is in the log, and waits for the next transaction. */
  written(move: Move, start: LogPosition): void {
    this.#written.push({ move, start })
  }

  get hasWritten(): boolean {
    return this.#written.length > 0
  }

  /** Within the transaction, when the rows stand as they will. */
  write(): void {
    const { blocks } = this.environment.tables
    for (const { move, start } of this.#written)
      for (const { key, from, at } of move.blocks) {
        const row = this.#rowAt(key, from)
        if (row === null) continue
        const to = { segment: start.segment, offset: start.offset + at, bytes: from.bytes }
        blocks.put(key, row.movedTo(to).encode())
        this.segments.add(from.segment, -1, -from.bytes)
        this.segments.add(to.segment, 1, to.bytes)
      }
  }

  /** @param known up to where the index knows the log. */
  committed(known: LogPosition): void {
    this.#written = []
    this.#known = known
    this.#spareBytes = this.log.bytes - this.segments.bytesLeft
    this.#hasNone = false
    for (const segment of this.#done)
      if (!this.log.segments().has(segment)) this.#done.delete(segment)
  }

  /** Moves were refused, which may be of any segment that was gone through: each is looked through again. */
  refused(): void {
    this.#emptying = null
    this.#done.clear()
  }

  #begin(): Emptying | null {
    const segment = this.#mayBegin ? this.#emptiest() : null
    this.#hasNone = segment === null
    if (segment === null) return null
    const { log } = this
    const bytes = log.segments().get(segment)!
    const scan = new SegmentScan(this.environment.log, segment, bytes, log.hashKey)
    return { scan, blocks: this.#blocksOf(scan) }
  }

  #emptiest(): number | null {
    let emptiest: number | null = null
    let least = SHARE_LEFT_MAX
    for (const [segment, bytes] of this.log.segments()) {
      const left = this.segments.left(segment)
      const isKnown = segment < this.#known.segment
      if (left === null || !isKnown || this.#done.has(segment) || left.bytes >= least * bytes)
        continue
      emptiest = segment
      least = left.bytes / bytes
    }
    return emptiest
  }

  #find({ scan, blocks }: Emptying): FoundBlock[] {
    const found: FoundBlock[] = []
    const readsMax = scan.reads + READS_PER_STEP
    for (let bytes = 0; bytes < this.stepBytes && scan.reads < readsMax; ) {
      const { value, done } = blocks.next()
      if (done) {
        this.#done.add(scan.segment)
        this.#emptying = null
        break
      }
      if (value === null) continue
      found.push(value)
      bytes += value.bytes.byteLength
    }
    return found
  }

  /** null: nothing was found so far. */
  *#blocksOf(scan: SegmentScan): Generator<FoundBlock | null> {
    for (const append of scan.appends()) {
      yield null
      if (append === null || append.header.kind === 'settled') continue
      if (!this.isJob(append.header.job)) continue
      for (const block of append.header.blocks) {
        const found = this.#blockOf(scan, append, block)
        if (found !== null) yield found
      }
    }
  }

  /** null: the index has it elsewhere, or no more, or it is damaged and is set aside by who meets it. */
  #blockOf(
    scan: SegmentScan,
    { header: { job }, offset: appendOffset }: AppendPlace,
    block: LoggedBlock,
  ): FoundBlock | null {
    const { segment } = scan
    const place = { segment, offset: appendOffset + block.at, bytes: block.bytes }
    const row = this.#rowAt(blockKey(job, block.shape, block.firstSequence), place)
    const read = row === null ? null : scan.read(place.offset, place.bytes)
    if (row === null || read === null) return null
    // Copied: columns are viewed at addresses that are multiples of 8.
    const bytes = new Uint8Array(read)
    const isWhole = decodeBlock(bytes)?.count === row.count && checksumOf(bytes) === block.crc
    return isWhole ? { job, block, place, bytes } : null
  }

  /** null: the block does not stand there. */
  #rowAt(key: Buffer, { segment, offset }: BlockPlace): BlockRow | null {
    const value = this.environment.tables.blocks.getBinary(key)
    const row = value === undefined ? null : BlockRow.decode(value)
    return row?.place.segment === segment && row.place.offset === offset ? row : null
  }
}

/** An append has the blocks of one job. */
function movesOf(found: readonly FoundBlock[]): Move[] {
  const jobs = new Map<number, FoundBlock[]>()
  for (const one of found) {
    const ofJob = jobs.get(one.job)
    if (ofJob === undefined) jobs.set(one.job, [one])
    else ofJob.push(one)
  }
  return [...jobs].map(([job, ofJob]) => moveOf(job, ofJob))
}

function moveOf(job: number, found: readonly FoundBlock[]): Move {
  let size = appendHeaderBytes(found.length)
  const blocks = found.map(({ block }) => {
    const at = size
    size += align8(block.bytes)
    return { ...block, at }
  })
  const bytes = Buffer.alloc(size)
  blocks.forEach(({ at }, index) => {
    bytes.set(found[index].bytes, at)
  })
  return {
    append: { kind: 'moved', job, blocks, parts: [bytes], bytes: size },
    blocks: blocks.map(({ shape, firstSequence, at }, index) => ({
      key: blockKey(job, shape, firstSequence),
      from: found[index].place,
      at,
    })),
  }
}

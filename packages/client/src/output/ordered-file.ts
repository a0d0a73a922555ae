// Puts records that come in any order into input order. They go to a spool beside the output as they
// come, with their places in memory (12 bytes each); at the end they are gathered place by place into
// a second file, which then takes the output's name, or into a pipe or device as it stands.
import { closeSync, mkdtempSync, openSync, readSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { float64Column, uint32Column } from './column.js'
import { LineFile, outputError } from './line-file.js'

/** Gathered at a time: bounds memory, and gives reads that lie near each other. */
const WINDOW_BYTES = 8 << 20
const WINDOW_RECORDS = 8192
/** Reading over a gap of this size is cheaper than another read. */
const GAP_BYTES = 16 << 10

/** Where a record stands in the spool, in bytes. */
interface Spooled {
  readonly start: number
  readonly length: number
}

interface Extent extends Spooled {
  /** Where it belongs in the window. */
  readonly target: number
}

export const partialOf = (path: string): string => `${path}.partial`
export const sortedOf = (path: string): string => `${path}.sorted`

export class OrderedFile {
  readonly spoolPath: string
  readonly #stream: LineFile | null
  readonly #spool: LineFile
  /** Byte of the spool where the record of a place begins. */
  readonly #starts = float64Column()
  /** 0: no record of this place. */
  readonly #lengths = uint32Column()
  #places = 0

  /** @param stream takes the records at the end; otherwise a file of this path does. */
  constructor(
    readonly path: string,
    { spoolPath = partialOf(path), stream = null as LineFile | null, keptBytes = 0 } = {},
  ) {
    this.spoolPath = spoolPath
    this.#stream = stream
    this.#spool = new LineFile(spoolPath, { keptBytes })
  }

  /** Into a pipe or device, beside which there is no place for a spool. */
  static into(stream: LineFile): OrderedFile {
    const folder = mkdtempSync(join(tmpdir(), 'fabric-'))
    return new OrderedFile(stream.path, { spoolPath: join(folder, 'out.partial'), stream })
  }

  /** The first record of a place stands. @returns whether this is it. */
  append(place: number, record: string): boolean {
    return this.#lengths.get(place) === 0 && this.put(place, this.spool(record))
  }

  /** A record whose place may be told later. */
  spool(record: string): Spooled {
    return { start: this.#spool.bytes, length: this.#spool.append(record) }
  }

  /** Gives a record of the spool its place. @returns whether it is the first of this place. */
  put(place: number, { start, length }: Spooled): boolean {
    if (this.#lengths.get(place) !== 0) return false
    this.#starts.set(place, start)
    this.#lengths.set(place, length)
    this.#places = Math.max(this.#places, place + 1)
    return true
  }

  flush(): void {
    this.#spool.flush()
  }

  /** Writes the output and removes the spool; between the two it tells that the output is whole. */
  finish(whole: () => void = () => {}): void {
    this.#spool.close()
    const spool = openSync(this.spoolPath, 'r')
    try {
      const sorted = this.#stream ?? new LineFile(sortedOf(this.path))
      for (let place = 0; place < this.#places; ) place = this.#gather(place, spool, sorted)
      if (this.#stream === null) sorted.sync()
      sorted.close()
      if (this.#stream === null) renameSync(sorted.path, this.path)
    } catch (error) {
      const kept = `the records are kept in ${this.spoolPath}, in the order in which items ended`
      throw outputError(this.path, error, kept)
    } finally {
      closeSync(spool)
    }
    whole()
    rmSync(this.#stream === null ? this.spoolPath : dirname(this.spoolPath), { recursive: true })
  }

  /** Keeps what there is, as lines in the order in which items ended. @returns its path. */
  keep(): string {
    this.#spool.close()
    return this.spoolPath
  }

  /** Copies records from `place` on. @returns the place behind the last. */
  #gather(place: number, spool: number, sorted: LineFile): number {
    const extents: Extent[] = []
    let bytes = 0
    let next = place
    for (; next < this.#places && extents.length < WINDOW_RECORDS; next++) {
      const length = this.#lengths.get(next)
      if (extents.length > 0 && bytes + length > WINDOW_BYTES) break
      if (length > 0) extents.push({ start: this.#starts.get(next), length, target: bytes })
      bytes += length
    }
    const window = Buffer.allocUnsafe(bytes)
    for (const run of runsOf(extents)) copyRun(run, spool, window)
    sorted.write(window)
    return next
  }
}

/** Extents that lie close together in the spool, in its order. */
function runsOf(extents: Extent[]): Extent[][] {
  extents.sort((a, b) => a.start - b.start)
  const runs: Extent[][] = []
  let end = Number.NEGATIVE_INFINITY
  for (const extent of extents) {
    if (extent.start - end > GAP_BYTES) runs.push([])
    runs.at(-1)!.push(extent)
    end = extent.start + extent.length
  }
  return runs
}

function copyRun(run: readonly Extent[], spool: number, window: Buffer): void {
  const [first, last] = [run[0], run.at(-1)!]
  const bytes = Buffer.allocUnsafe(last.start + last.length - first.start)
  for (let at = 0; at < bytes.length; ) {
    const got = readSync(spool, bytes, at, bytes.length - at, first.start + at)
    if (got === 0) throw new Error('the spool is shorter than what was written to it')
    at += got
  }
  for (const { start, length, target } of run) {
    bytes.copy(window, target, start - first.start, start - first.start + length)
  }
}

// Where the records of a run go. Both kinds get every record once; they differ in order, in memory,
// and in what is left when a run is broken off.
import type { ItemLine, LineError } from '../input/parse.js'
import type { JobResult } from '../results/value.js'
import { IdIndex } from './id-index.js'
import type { Ended } from './kept.js'
import type { LineFile } from './line-file.js'
import type { LooseRecords } from './loose-records.js'
import type { OrderedFile } from './ordered-file.js'
import { failedRecord, resultRecord } from './record.js'

export interface Sink {
  /** Told before an item is submitted. Lines of one id are one item: the first line's. */
  expect(item: ItemLine): void
  result(result: JobResult): void
  /** A line that is no item, or that the broker refused. */
  failed(line: { readonly id: string; readonly position: number }, error: LineError): void
  /** Expected items without a record; null where it is not known which were expected. */
  readonly missing: number | null
  /** What was told so far survives the end of the process. */
  flush(): void
  /** @param whole told when the output is whole, before what it was made from is removed. */
  finish(whole: () => void): void
  /** Ends early. @returns the path under which what was written is kept. */
  keep(): string
}

/** Told of every item of this run that has ended, once. */
export type Settle = (ended: Ended) => void

export class OrderedSink implements Sink {
  readonly #ids = new IdIndex()
  #recorded = 0

  constructor(
    readonly file: OrderedFile,
    /** Also the results of others, where a job is gone on with. */
    readonly loose: LooseRecords,
    readonly settle: Settle,
  ) {}

  expect({ id, position }: ItemLine): void {
    if (this.#ids.add(id, position) >= 0) return
    const found = this.loose.get(id)
    if (found === null || !this.file.put(position, found)) return
    this.#recorded += 1
    this.settle(found)
  }

  get missing(): number {
    return this.#ids.size - this.#recorded
  }

  result(result: JobResult): void {
    const spooled = this.file.spool(resultRecord(result))
    const place = this.#ids.get(result.id)
    if (place < 0) this.loose.add({ ...result, ...spooled })
    else if (this.file.put(place, spooled)) {
      this.#recorded += 1
      this.settle(result)
    }
  }

  failed({ id, position }: { id: string; position: number }, error: LineError): void {
    const isFirst = this.file.append(position, failedRecord(id, error))
    // The broker has refused an item that was expected.
    if (isFirst && this.#ids.get(id) === position) this.#recorded += 1
  }

  flush(): void {
    this.file.flush()
  }

  finish(whole: () => void): void {
    this.file.finish(whole)
  }

  keep(): string {
    return this.file.keep()
  }
}

export class CompletionSink implements Sink {
  readonly missing = null

  constructor(
    readonly file: LineFile,
    /** Lines whose records an earlier run left. */
    readonly failedLines: ReadonlySet<number>,
    readonly settle: Settle,
    /** Neither a pipe nor a device. */
    readonly isFile: boolean,
  ) {}

  expect(): void {}

  result(result: JobResult): void {
    this.file.append(resultRecord(result))
    this.settle(result)
  }

  failed({ id }: { id: string }, error: LineError): void {
    if (!this.failedLines.has(error.line)) this.file.append(failedRecord(id, error))
  }

  flush(): void {
    this.file.flush()
  }

  finish(whole: () => void): void {
    if (this.isFile) this.file.sync()
    this.file.close()
    whole()
  }

  keep(): string {
    this.file.close()
    return this.file.path
  }
}

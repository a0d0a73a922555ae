// Where the records of a run go. Both kinds get every record once; they differ in order, in memory,
// and in what is left when a run is broken off.
import type { ItemLine, LineError } from '../input/parse.js'
import type { JobResult } from '../results/value.js'
import { IdIndex } from './id-index.js'
import type { LineFile } from './line-file.js'
import type { LooseRecords } from './loose-records.js'
import type { OrderedFile } from './ordered-file.js'
import { failedRecord, resultRecord } from './record.js'
import type { Ended } from './resume.js'

export interface Sink {
  /** Told before an item is submitted. Lines of one id are one item: the first line's. */
  expect(item: ItemLine): void
  result(result: JobResult): void
  /** A line that is no item, or that the broker refused. */
  failed(line: { readonly id: string; readonly position: number }, error: LineError): void
  finish(): void
  /** Ends early. @returns the path under which what was written is kept. */
  keep(): string
}

/** Told of every item of this run that has ended, once. */
export type Settle = (ended: Ended) => void

export class OrderedSink implements Sink {
  readonly #ids = new IdIndex()

  constructor(
    readonly file: OrderedFile,
    /** Also the results of others, where a job is gone on with. */
    readonly loose: LooseRecords,
    readonly settle: Settle,
  ) {}

  expect({ id, position }: ItemLine): void {
    if (this.#ids.add(id, position) >= 0) return
    const found = this.loose.get(id)
    if (found !== null && this.file.put(position, found)) this.settle(found)
  }

  result(result: JobResult): void {
    const spooled = this.file.spool(resultRecord(result))
    const place = this.#ids.get(result.id)
    if (place < 0) this.loose.add({ ...result, ...spooled })
    else if (this.file.put(place, spooled)) this.settle(result)
  }

  failed({ id, position }: { id: string; position: number }, error: LineError): void {
    this.file.append(position, failedRecord(id, error))
  }

  finish(): void {
    this.file.finish()
  }

  keep(): string {
    return this.file.keep()
  }
}

export class CompletionSink implements Sink {
  constructor(
    readonly file: LineFile,
    /** Lines whose records an earlier run left. */
    readonly failedLines: ReadonlySet<number>,
    readonly settle: Settle,
  ) {}

  expect(): void {}

  result(result: JobResult): void {
    this.file.append(resultRecord(result))
    this.settle(result)
  }

  failed({ id }: { id: string }, error: LineError): void {
    if (!this.failedLines.has(error.line)) this.file.append(failedRecord(id, error))
  }

  finish(): void {
    this.file.close()
  }

  keep(): string {
    this.file.close()
    return this.file.path
  }
}

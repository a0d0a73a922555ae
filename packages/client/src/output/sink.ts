// Where the records of a run go. Both kinds get every record once; they differ in order, in memory,
// and in what is left when a run is broken off.
import type { ItemLine, LineError } from '../input/parse.js'
import type { JobResult } from '../results/value.js'
import { IdIndex } from './id-index.js'
import { LineFile } from './line-file.js'
import { OrderedFile } from './ordered-file.js'
import { failedRecord, resultRecord } from './record.js'
import { openStream, type Target } from './target.js'

export interface Sink {
  /** Told before an item is submitted. Lines of one id are one item: the first line's. */
  expect(item: ItemLine): void
  /** @returns false when the result is of no item of this run: a job may be gone on with. */
  result(result: JobResult): boolean
  /** A line that is no item, or that the broker refused. */
  failed(line: { readonly id: string; readonly position: number }, error: LineError): void
  finish(): void
  /** Ends early. @returns the path under which what was written is kept. */
  keep(): string
}

export class OrderedSink implements Sink {
  readonly #file: OrderedFile
  readonly #ids = new IdIndex()

  constructor(file: OrderedFile) {
    this.#file = file
  }

  static async open(target: Target): Promise<OrderedSink> {
    if (target.file !== null) return new OrderedSink(new OrderedFile(target.file))
    const stream = new LineFile(target.name, { file: await openStream(target) })
    return new OrderedSink(OrderedFile.into(stream))
  }

  expect({ id, position }: ItemLine): void {
    this.#ids.add(id, position)
  }

  result(result: JobResult): boolean {
    const place = this.#ids.get(result.id)
    return place >= 0 && this.#file.append(place, resultRecord(result))
  }

  failed({ id, position }: { id: string; position: number }, error: LineError): void {
    this.#file.append(position, failedRecord(id, error))
  }

  finish(): void {
    this.#file.finish()
  }

  keep(): string {
    return this.#file.keep()
  }
}

export class CompletionSink implements Sink {
  readonly #file: LineFile

  constructor(file: LineFile) {
    this.#file = file
  }

  static async open(target: Target): Promise<CompletionSink> {
    if (target.file !== null) return new CompletionSink(new LineFile(target.file))
    return new CompletionSink(new LineFile(target.name, { file: await openStream(target) }))
  }

  expect(): void {}

  result(result: JobResult): boolean {
    this.#file.append(resultRecord(result))
    return true
  }

  failed({ id }: { id: string }, error: LineError): void {
    this.#file.append(failedRecord(id, error))
  }

  finish(): void {
    this.#file.close()
  }

  keep(): string {
    this.#file.close()
    return this.#file.path
  }
}

// What the writing thread has, without the thread, so that a life of a store can end at any point.
import { type Environment, openEnvironment } from '../../../src/storage/environment.ts'
import { LogQueue } from '../../../src/storage/log-queue.ts'
import { packSettled, settledBytes, settledColumns } from '../../../src/storage/settled-columns.ts'
import type { SettledItem, StoreProblem } from '../../../src/storage/store.ts'
import { type Step, Writer } from '../../../src/storage/writer.ts'
import { blockOf, columnsOf, type TestItem } from './items.ts'

const ALL = 1e12

export class Life {
  readonly environment: Environment
  readonly writer: Writer
  readonly log: LogQueue

  constructor(
    dataDir: string,
    onProblem: (problem: StoreProblem) => void,
    /** Ids of a job that are kept in memory. */
    recentIds?: number,
    segmentBytesMax?: number,
  ) {
    this.environment = openEnvironment(dataDir)
    const settings = { maxKeptResultBytes: ALL, sync: 'always', segmentBytesMax } as const
    this.writer = new Writer(this.environment, settings, onProblem, recentIds)
    this.log = new LogQueue(this.writer)
  }

  /** @returns the codes, by item. */
  admit(job: number, items: readonly TestItem[], sequences: Float64Array): Uint8Array {
    const admitted = this.writer.admit(columnsOf(blockOf(job, items), sequences), 1)
    this.log.add({ kind: 'items', id: 0, admitted, bytes: 1, isAnswered: false, borrowed: null })
    return admitted.codes
  }

  /** Into the log, and into memory; @returns what the settlements among them were answered. */
  async write(): Promise<number[]> {
    await this.log.writeNext()
    const answers: number[] = []
    for (let next = this.log.written; next !== null; next = this.log.written) {
      const { pending } = next
      if (pending.kind === 'settle') {
        const columns = settledColumns(pending.settled)
        if (!this.writer.knows(columns)) this.commit()
        answers.push(...this.writer.settle(columns))
      }
      this.log.take()
    }
    return answers
  }

  settle(items: readonly SettledItem[]): Promise<number[]> {
    const bytes = settledBytes(items)
    const memory = new ArrayBuffer(bytes)
    packSettled(items, memory, bytes)
    const settled = { count: items.length, bytes, memory }
    const borrowed = { number: null, memory: null }
    this.log.add({ kind: 'settle', id: 0, bytes: 1, settled, borrowed })
    return this.write()
  }

  /** A step of compaction, into the log and not into the index. @returns blocks. */
  async move(): Promise<number> {
    if (!this.writer.compaction.isDue(false)) return 0
    const moves = this.writer.compaction.step()
    this.log.addMoves(moves)
    await this.write()
    return moves.reduce((sum, { blocks }) => sum + blocks.length, 0)
  }

  /** Until nothing is to be moved. @returns blocks. */
  async compact(): Promise<number> {
    let blocks = 0
    for (;;) {
      while (this.writer.compaction.isDue(false)) blocks += await this.move()
      if (!this.writer.hasUnindexed) return blocks
      this.commit()
    }
  }

  /** Into the index. */
  commit(steps: readonly Step[] = [], beforeCommit = () => {}): unknown[] {
    const { logged, position } = this.log
    const answers = this.writer.commit(logged, steps, position, beforeCommit)
    this.log.indexed()
    return answers
  }

  /** A transaction that comes to nothing. */
  abort(): void {
    const why = new Error('aborted on purpose')
    try {
      this.commit([], () => {
        throw why
      })
    } catch (error) {
      if (error !== why) throw error
    }
    this.writer.rollBack(this.log.unindexed())
  }

  async end(): Promise<void> {
    this.environment.log.close()
    await this.environment.root.close()
  }
}

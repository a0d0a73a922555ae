// What the writing thread says to the caller's at the end of a turn: answers, which results there are, how
// large the files are, and what of the caller's memory and files is free again.
import type { Failure, FromWriter, StoreSize } from './messages.js'
import type { BorrowedBuffers } from './shared-buffers.js'
import type { Writer } from './writer.js'

/** How often the size of the files is told: to ask LMDB for it takes as long as to append some items. */
export const SIZE_INTERVAL_MS = 100

interface Answer {
  readonly id: number
  readonly value?: unknown
  readonly failure?: Failure
}

export class Answers {
  #answers: Answer[] = []
  #size: StoreSize
  #sizedAt = performance.now()
  /** Something was written since the size was asked for. */
  hasGrown = false

  constructor(
    readonly writer: Writer,
    readonly buffers: BorrowedBuffers,
    readonly tell: (message: FromWriter) => void,
  ) {
    this.#size = writer.size
  }

  push(answer: Answer): void {
    this.#answers.push(answer)
  }

  send(): void {
    const isSizeLate = this.hasGrown && performance.now() - this.#sizedAt > SIZE_INTERVAL_MS
    if (isSizeLate) {
      this.#size = this.writer.size
      this.#sizedAt = performance.now()
      this.hasGrown = false
    }
    if (this.#answers.length === 0 && !isSizeLate) return
    const answers = this.#answers
    const buffers = this.buffers.takeRead()
    this.#answers = []
    const ranges = this.writer.ranges()
    const removed = this.writer.removed()
    this.tell({ kind: 'done', answers, ranges, size: this.#size, buffers, removed })
  }
}

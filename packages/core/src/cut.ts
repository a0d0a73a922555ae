// One item cut out of a submission's flat columns.

import { CoreBug } from './core-bug.js'
import type { SubmitBlock } from './submission.js'

/** Where the parts of one item lie in the block's columns. Moved along, never made per item. */
export class Cut {
  model = 0
  length = 0
  tokensFrom = 0
  tokensTo = 0
  idFrom = 0
  idTo = 0
  payloadFrom = 0
  payloadTo = 0
  /** 0 = none. */
  deadlineMs = 0
  /** 0 = the job's. */
  maxWaitMs = 0

  constructor(
    readonly block: SubmitBlock,
    private readonly lengthsOnly: boolean,
  ) {}

  next(at: number): void {
    const { block } = this
    this.model = block.model[at]
    this.length = block.lengths[at]
    if (this.length < 1) throw new CoreBug(`item ${at} of a block has length ${this.length}`)
    this.deadlineMs = block.deadlineMs?.[at] ?? 0
    this.maxWaitMs = block.maxWaitMs?.[at] ?? 0
    this.idFrom = this.idTo
    this.idTo = block.idEnds[at]
    this.payloadFrom = this.payloadTo
    if (block.payloadEnds !== null) this.payloadTo = block.payloadEnds[at]
    this.tokensFrom = this.tokensTo
    if (!this.lengthsOnly && this.payloadTo === this.payloadFrom) this.tokensTo += this.length
    if (this.tokensTo > block.tokens.length || this.idTo > block.ids.length) {
      throw new CoreBug(`a block ends before its item ${at}`)
    }
  }

  get idBytes(): number {
    return this.idTo - this.idFrom
  }

  get payloadBytes(): number {
    return this.payloadTo - this.payloadFrom
  }
}

// Where the ids of all jobs lie: blocks of cells, in slabs of their own. Ids are known for a day after
// their items have ended, and must not hold the memory of a queue that is empty.

import { type Piece, Slabs } from './slabs.js'

/** Words of a cell: high, low, body. Side by side, so that a look-up is one cache miss. */
export const CELL_WORDS = 3
export const BLOCK_CELLS = 512
const BLOCK_BYTES = BLOCK_CELLS * CELL_WORDS * 4
/** The slab that stays: some 12,000 ids. */
const FIRST_BYTES = 32 * BLOCK_BYTES

export class IdBlock {
  readonly cells: Uint32Array

  constructor(
    capacity: number,
    /** Null: less than a block, in memory of its own. */
    readonly piece: Piece | null,
  ) {
    const words = capacity * CELL_WORDS
    this.cells =
      piece === null
        ? new Uint32Array(words)
        : new Uint32Array(piece.buffer, piece.byteOffset, words)
    this.cells.fill(0)
  }
}

export class IdBlocks {
  readonly slabs = new Slabs(BLOCK_BYTES, FIRST_BYTES)

  /** Blocks, all empty, of so many cells: less than one block, or whole ones. */
  take(capacity: number): readonly IdBlock[] {
    if (capacity < BLOCK_CELLS) return [new IdBlock(capacity, null)]
    const blocks: IdBlock[] = []
    for (let cells = 0; cells < capacity; cells += BLOCK_CELLS) {
      blocks.push(new IdBlock(BLOCK_CELLS, this.slabs.take(BLOCK_BYTES)))
    }
    return blocks
  }

  give(blocks: readonly IdBlock[]): void {
    for (const { piece } of blocks) if (piece !== null) this.slabs.give(piece)
  }
}

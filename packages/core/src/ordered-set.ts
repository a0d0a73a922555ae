// A set of small integers in order: which lanes are ready, which shapes have work (S13, S14).
//
// A hierarchy of 32-bit words: bit b of word w on one level says that word 32w + b of the level
// below is not empty. Each question climbs and descends at most seven levels, so its cost grows with
// the logarithm of the number of lanes. Words that are 0 are not stored: one item of two thousand
// million tokens must not cost a bitmap of that width.

const LEVELS = 7

export class OrderedSet {
  private readonly levels: Map<number, number>[] = Array.from({ length: LEVELS }, () => new Map())

  isEmpty(): boolean {
    return this.levels[LEVELS - 1].size === 0
  }

  has(key: number): boolean {
    return (((this.levels[0].get(key >>> 5) ?? 0) >>> (key & 31)) & 1) === 1
  }

  add(key: number): void {
    let at = key
    for (const level of this.levels) {
      const word = at >>> 5
      const bits = level.get(word) ?? 0
      level.set(word, bits | (1 << (at & 31)))
      if (bits !== 0) return
      at = word
    }
  }

  remove(key: number): void {
    if (!this.has(key)) return
    let at = key
    for (const level of this.levels) {
      const word = at >>> 5
      const bits = level.get(word)! & ~(1 << (at & 31))
      if (bits !== 0) {
        level.set(word, bits)
        return
      }
      level.delete(word)
      at = word
    }
  }

  clear(): void {
    for (const level of this.levels) level.clear()
  }

  /** The least member that is at least `key`, or -1. */
  next(key: number): number {
    let at = key
    for (let depth = 0; depth < LEVELS; depth++) {
      const word = at >>> 5
      const bits = (this.levels[depth].get(word) ?? 0) & (-1 << (at & 31))
      if (bits !== 0) return this.descend(depth, word * 32 + lowestBit(bits), lowestBit)
      at = word + 1
    }
    return -1
  }

  /** The greatest member that is at most `key`, or -1. */
  previous(key: number): number {
    if (key < 0) return -1
    let at = key
    for (let depth = 0; depth < LEVELS; depth++) {
      const word = at >>> 5
      const bits = (this.levels[depth].get(word) ?? 0) & (-1 >>> (31 - (at & 31)))
      if (bits !== 0) return this.descend(depth, word * 32 + highestBit(bits), highestBit)
      if (word === 0) return -1
      at = word - 1
    }
    return -1
  }

  private descend(depth: number, at: number, pick: (bits: number) => number): number {
    let found = at
    for (let d = depth - 1; d >= 0; d--) found = found * 32 + pick(this.levels[d].get(found)!)
    return found
  }
}

function lowestBit(bits: number): number {
  return 31 - Math.clz32(bits & -bits)
}

function highestBit(bits: number): number {
  return 31 - Math.clz32(bits)
}

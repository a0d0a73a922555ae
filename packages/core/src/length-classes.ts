// Lengths to keys of shapes: which lengths wait in one queue (S20).
//
// A key is a padded length / roundTo, so keys are small and in order of length. By default every
// padded length is a class of its own; the operator's edges make coarser ones, each with the key of
// its edge. Beyond the last edge lengths go on by roundTo.

/** `length` rounded up to a multiple. Not bit arithmetic: lengths go up to 2^31 - 1 (S17). */
export function roundUp(length: number, multiple: number): number {
  return Math.ceil(length / multiple) * multiple
}

export class LengthClasses {
  /** Keys of the edges, ascending. */
  private readonly edges: readonly number[]

  /** `edges` ascend; they are rounded up to `roundTo`, as lengths are. */
  constructor(
    private readonly roundTo: number,
    edges: readonly number[],
  ) {
    const keys = edges.map((edge) => Math.ceil(edge / roundTo))
    this.edges = keys.filter((key, at) => key !== keys[at - 1])
  }

  /** Key of the padded length itself, whatever the classes. */
  paddedKey(length: number): number {
    return Math.ceil(length / this.roundTo)
  }

  /** Key of the class that holds a padded key. */
  classKey(paddedKey: number): number {
    const at = this.at(paddedKey)
    return at === this.edges.length ? paddedKey : this.edges[at]
  }

  /** Whether more than one padded length waits under this key of a class. */
  isMixed(key: number): boolean {
    const at = this.at(key)
    if (at === this.edges.length) return false
    return key - (at === 0 ? 0 : this.edges[at - 1]) > 1
  }

  /** The first edge that is at least `key`. */
  private at(key: number): number {
    let [from, to] = [0, this.edges.length]
    while (from < to) {
      const middle = (from + to) >>> 1
      if (this.edges[middle] < key) from = middle + 1
      else to = middle
    }
    return from
  }
}

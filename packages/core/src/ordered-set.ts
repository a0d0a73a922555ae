// A set of small integers in order: which lanes are ready, which shapes have work (S13, S14).
//
// A tree of three levels with 1,024 places a node: bits say which places are not empty, so each
// question reads a few words of at most five nodes, whatever the number of lanes. A node is two cache
// lines of bits; nodes come with their first member and go with their last, since one item of two
// thousand million tokens must not cost a bitmap of that width.

const WORDS = 32
const PLACE_MASK = 1023
const SPARE_NODES = 2

/** 1,024 places in order. */
class Node {
  /** Bit p & 31 of word p >>> 5: place p is not empty. */
  readonly words = new Int32Array(WORDS)
  /** Bit w: word w is not 0. */
  filled = 0
  /** By place; a leaf has none. */
  readonly below: (Node | undefined)[] = []

  has(place: number): boolean {
    return ((this.words[place >>> 5] >>> (place & 31)) & 1) === 1
  }

  add(place: number): void {
    this.words[place >>> 5] |= 1 << (place & 31)
    this.filled |= 1 << (place >>> 5)
  }

  remove(place: number): void {
    const word = place >>> 5
    this.words[word] &= ~(1 << (place & 31))
    if (this.words[word] === 0) this.filled &= ~(1 << word)
  }

  /** The least place in use that is at least `place`, or -1. */
  next(place: number): number {
    if (place > PLACE_MASK) return -1
    const word = place >>> 5
    const bits = this.words[word] & (-1 << (place & 31))
    if (bits !== 0) return word * 32 + lowestBit(bits)
    const after = word === 31 ? 0 : this.filled & (-1 << (word + 1))
    if (after === 0) return -1
    const at = lowestBit(after)
    return at * 32 + lowestBit(this.words[at])
  }

  /** The greatest place in use that is at most `place`, or -1. */
  previous(place: number): number {
    if (place < 0) return -1
    const word = place >>> 5
    const bits = this.words[word] & (-1 >>> (31 - (place & 31)))
    if (bits !== 0) return word * 32 + highestBit(bits)
    const before = this.filled & ((1 << word) - 1)
    if (before === 0) return -1
    const at = highestBit(before)
    return at * 32 + highestBit(this.words[at])
  }
}

export class OrderedSet {
  /** By the key's bits from 30 on: there is a second one only with keys that long. */
  private roots = [new Node()]
  /** Empty nodes for the next that come: a lane that is ready now and then does not allocate. */
  private readonly spare: Node[] = []

  isEmpty(): boolean {
    const { roots } = this
    for (let top = 0; top < roots.length; top++) if (roots[top].filled !== 0) return false
    return true
  }

  has(key: number): boolean {
    return this.leafOf(key)?.has(key & PLACE_MASK) === true
  }

  add(key: number): void {
    const { roots } = this
    while (roots.length <= key >>> 30) roots.push(new Node())
    const middle = this.open(roots[key >>> 30], (key >>> 20) & PLACE_MASK)
    this.open(middle, (key >>> 10) & PLACE_MASK).add(key & PLACE_MASK)
  }

  remove(key: number): void {
    const leaf = this.leafOf(key)
    if (leaf === undefined) return
    leaf.remove(key & PLACE_MASK)
    if (leaf.filled !== 0) return
    const root = this.roots[key >>> 30]
    const middle = root.below[(key >>> 20) & PLACE_MASK]!
    this.close(middle, (key >>> 10) & PLACE_MASK)
    if (middle.filled === 0) this.close(root, (key >>> 20) & PLACE_MASK)
  }

  clear(): void {
    this.roots = [new Node()]
  }

  /** The least member that is at least `key`, or -1. */
  next(key: number): number {
    const { roots } = this
    let from = key
    for (let top = key >>> 30; top < roots.length; top++) {
      const found = nextBelow(roots[top], 2, from & 0x3fffffff)
      if (found >= 0) return top * 0x40000000 + found
      from = 0
    }
    return -1
  }

  /** The greatest member that is at most `key`, or -1. */
  previous(key: number): number {
    if (key < 0) return -1
    const { roots } = this
    for (let top = Math.min(key >>> 30, roots.length - 1); top >= 0; top--) {
      const from = top === key >>> 30 ? key & 0x3fffffff : 0x3fffffff
      const found = previousBelow(roots[top], 2, from)
      if (found >= 0) return top * 0x40000000 + found
    }
    return -1
  }

  private leafOf(key: number): Node | undefined {
    const middle = this.roots[key >>> 30]?.below[(key >>> 20) & PLACE_MASK]
    return middle?.below[(key >>> 10) & PLACE_MASK]
  }

  private open(node: Node, place: number): Node {
    const known = node.below[place]
    if (known !== undefined) return known
    const made = this.spare.pop() ?? new Node()
    node.below[place] = made
    node.add(place)
    return made
  }

  /** The node below has no members left. */
  private close(node: Node, place: number): void {
    if (this.spare.length < SPARE_NODES) this.spare.push(node.below[place]!)
    node.below[place] = undefined
    node.remove(place)
  }
}

/** The least member of a node that is `levels` above the leaves. At most one look below is in vain. */
function nextBelow(node: Node, levels: number, key: number): number {
  if (levels === 0) return node.next(key)
  const shift = levels * 10
  const from = key >>> shift
  const rest = key & ((1 << shift) - 1)
  for (let at = node.next(from); at >= 0; at = node.next(at + 1)) {
    const found = nextBelow(node.below[at]!, levels - 1, at === from ? rest : 0)
    if (found >= 0) return (at << shift) + found
  }
  return -1
}

function previousBelow(node: Node, levels: number, key: number): number {
  if (levels === 0) return node.previous(key)
  const shift = levels * 10
  const from = key >>> shift
  const whole = (1 << shift) - 1
  for (let at = node.previous(from); at >= 0; at = node.previous(at - 1)) {
    const found = previousBelow(node.below[at]!, levels - 1, at === from ? key & whole : whole)
    if (found >= 0) return (at << shift) + found
  }
  return -1
}

function lowestBit(bits: number): number {
  return 31 - Math.clz32(bits & -bits)
}

function highestBit(bits: number): number {
  return 31 - Math.clz32(bits)
}

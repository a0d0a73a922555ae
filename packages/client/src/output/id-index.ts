// Which place of the input an id stands for, in about 18 bytes an item whatever the ids are: 96 bits
// of a hash for each place, and an open-addressed table of places. Two ids of ten million collide
// with a chance of 10^-15.
import { hash } from 'node:crypto'
import { uint32Column } from './column.js'

const FREE = 0
const WORDS = 3

export class IdIndex {
  readonly #words = uint32Column()
  /** Place + 1; FREE where none is. Length is a power of two, at most three quarters used. */
  #slots = new Uint32Array(1 << 10)
  #count = 0

  get size(): number {
    return this.#count
  }

  /** @returns the place that has the id already, or -1 when it is now `place`'s. */
  add(id: string, place: number): number {
    const key = keyOf(id)
    const slot = this.#find(key)
    if (this.#slots[slot] !== FREE) return this.#slots[slot] - 1
    for (let i = 0; i < WORDS; i++) this.#words.set(WORDS * place + i, key[i])
    this.#slots[slot] = place + 1
    this.#count += 1
    if (4 * this.#count > 3 * this.#slots.length) this.#grow()
    return -1
  }

  /** -1 when no place has it. */
  get(id: string): number {
    return this.#slots[this.#find(keyOf(id))] - 1
  }

  /** The slot that holds the key, or the free one where it belongs. */
  #find(key: Uint32Array): number {
    const mask = this.#slots.length - 1
    let slot = key[0] & mask
    while (this.#slots[slot] !== FREE && !this.#is(this.#slots[slot] - 1, key)) {
      slot = (slot + 1) & mask
    }
    return slot
  }

  #is(place: number, key: Uint32Array): boolean {
    for (let i = 0; i < WORDS; i++) {
      if (this.#words.get(WORDS * place + i) !== key[i]) return false
    }
    return true
  }

  #grow(): void {
    const old = this.#slots
    this.#slots = new Uint32Array(2 * old.length)
    const mask = this.#slots.length - 1
    for (const entry of old) {
      if (entry === FREE) continue
      let slot = this.#words.get(WORDS * (entry - 1)) & mask
      while (this.#slots[slot] !== FREE) slot = (slot + 1) & mask
      this.#slots[slot] = entry
    }
  }
}

function keyOf(id: string): Uint32Array {
  const digest = hash('sha1', id, 'buffer')
  return Uint32Array.of(digest.readUInt32LE(0), digest.readUInt32LE(4), digest.readUInt32LE(8))
}

// Memory that follows the length of the queue, in slabs that go back to the kernel.
//
// Each typed array of its own would come from malloc, which keeps what is freed in its heap unless
// nothing above it is in use: after a burst of ten million items 600 MB stayed resident. malloc maps
// what has 32 MiB or more by itself, whatever it has learnt before (glibc: DEFAULT_MMAP_THRESHOLD_MAX),
// and unmaps it when the collector drops it; pages of it that were never touched cost nothing.
//
// The first slab is small and stays, so that a short queue costs little.

const SLAB_BYTES = 32 * 1024 * 1024
/** An empty slab with no more touched is kept: a queue at a slab's edge does not map and unmap. */
const SPARE_BYTES = 6 * 1024 * 1024

/** A piece of a slab. What stood in it before may still stand in it. */
export interface Piece {
  readonly buffer: ArrayBuffer
  readonly byteOffset: number
  /** Of the slab, and its units in it. */
  readonly slab: number
  readonly from: number
  readonly units: number
}

class Slab {
  readonly buffer: ArrayBuffer
  /** By unit: 1 = in use. */
  private readonly taken: Uint8Array
  /** No unit below this one is free. */
  private lowest = 0
  used = 0
  /** Units that were ever in use lie below. */
  touched = 0

  constructor(
    readonly units: number,
    unitBytes: number,
  ) {
    this.buffer = new ArrayBuffer(units * unitBytes)
    this.taken = new Uint8Array(units)
  }

  /** The first run of so many free units, in use from now on, or -1. */
  take(units: number): number {
    if (this.units - this.used < units) return -1
    const from = this.find(units)
    if (from < 0) return -1
    this.taken.fill(1, from, from + units)
    this.used += units
    this.touched = Math.max(this.touched, from + units)
    if (from === this.lowest) this.lowest = from + units
    return from
  }

  give(from: number, units: number): void {
    this.taken.fill(0, from, from + units)
    this.used -= units
    this.lowest = Math.min(this.lowest, from)
  }

  private find(units: number): number {
    let free = 0
    for (let at = this.lowest; at < this.units; at++) {
      free = this.taken[at] === 0 ? free + 1 : 0
      if (free === units) return at - units + 1
    }
    return -1
  }
}

export class Slabs {
  private readonly slabs: (Slab | null)[] = []

  constructor(
    /** Pieces are multiples of it. */
    private readonly unitBytes: number,
    /** Of the slab that stays. */
    private readonly firstBytes: number,
  ) {}

  /** Whether more than the slab that stays is there. */
  get isGrown(): boolean {
    return this.slabs.length > 1
  }

  /** Of all slabs, touched or not. */
  get reservedBytes(): number {
    return this.sum((slab) => slab.units)
  }

  /** Of the pieces in use. */
  get usedBytes(): number {
    return this.sum((slab) => slab.used)
  }

  /** From the lowest slab with room, so that the others may become empty. */
  take(bytes: number): Piece {
    const units = Math.ceil(bytes / this.unitBytes)
    for (let index = 0; ; index++) {
      const slab = this.slabs[index] ?? this.open(index, units)
      const from = slab.take(units)
      if (from >= 0) {
        return { buffer: slab.buffer, byteOffset: from * this.unitBytes, slab: index, from, units }
      }
    }
  }

  /** The caller keeps no view of it. */
  give({ slab: index, from, units }: Piece): void {
    const slab = this.slabs[index]!
    slab.give(from, units)
    if (slab.used > 0 || index === 0) return
    const hasSpare = this.slabs.some((other, at) => at > 0 && other !== slab && other?.used === 0)
    if (hasSpare || slab.touched * this.unitBytes > SPARE_BYTES) this.drop(index)
  }

  private sum(unitsOf: (slab: Slab) => number): number {
    const units = this.slabs.reduce((sum, slab) => sum + (slab === null ? 0 : unitsOf(slab)), 0)
    return units * this.unitBytes
  }

  private open(index: number, units: number): Slab {
    const bytes = index === 0 ? this.firstBytes : SLAB_BYTES
    const slab = new Slab(Math.max(units, Math.ceil(bytes / this.unitBytes)), this.unitBytes)
    this.slabs[index] = slab
    return slab
  }

  private drop(index: number): void {
    this.slabs[index] = null
    while (this.slabs.length > 1 && this.slabs.at(-1) === null) this.slabs.pop()
  }
}

// A binary heap of handles, least first, whose entries can be moved and removed.
//
// Serves the timers (by time) and the order of service (by batches held). Two keys: with equal first
// keys the second decides, and callers make the second one of a kind, so the order is total and the
// same on every run.

export class Heap {
  private readonly order: number[] = []
  private readonly places: number[] = []
  private readonly firsts: number[] = []
  private readonly seconds: number[] = []

  get size(): number {
    return this.order.length
  }

  /** The handle that comes first, or -1. */
  top(): number {
    return this.order.length === 0 ? -1 : this.order[0]
  }

  has(handle: number): boolean {
    return handle < this.places.length && this.places[handle] >= 0
  }

  first(handle: number): number {
    return this.firsts[handle]
  }

  second(handle: number): number {
    return this.seconds[handle]
  }

  set(handle: number, first: number, second: number): void {
    while (this.places.length <= handle) {
      this.places.push(-1)
      this.firsts.push(0)
      this.seconds.push(0)
    }
    this.firsts[handle] = first
    this.seconds[handle] = second
    if (this.places[handle] < 0) {
      this.places[handle] = this.order.length
      this.order.push(handle)
    }
    this.siftUp(this.places[handle])
    this.siftDown(this.places[handle])
  }

  remove(handle: number): void {
    if (!this.has(handle)) return
    const place = this.places[handle]
    this.places[handle] = -1
    const last = this.order.pop()!
    if (last === handle) return
    this.put(place, last)
    this.siftUp(place)
    this.siftDown(this.places[last])
  }

  private isBefore(a: number, b: number): boolean {
    const first = this.firsts[a] - this.firsts[b]
    return first < 0 || (first === 0 && this.seconds[a] < this.seconds[b])
  }

  private put(place: number, handle: number): void {
    this.order[place] = handle
    this.places[handle] = place
  }

  private siftUp(from: number): void {
    const handle = this.order[from]
    let place = from
    while (place > 0) {
      const parent = (place - 1) >>> 1
      if (!this.isBefore(handle, this.order[parent])) break
      this.put(place, this.order[parent])
      place = parent
    }
    this.put(place, handle)
  }

  private siftDown(from: number): void {
    const handle = this.order[from]
    let place = from
    for (;;) {
      let child = place * 2 + 1
      if (child >= this.order.length) break
      if (
        child + 1 < this.order.length &&
        this.isBefore(this.order[child + 1], this.order[child])
      ) {
        child++
      }
      if (!this.isBefore(this.order[child], handle)) break
      this.put(place, this.order[child])
      place = child
    }
    this.put(place, handle)
  }
}

// What a model has, by shape and tier, in the order in which it was last served (S16).
//
// A list, not a heap: a service puts what it served at the end, and with tens of thousands of lanes the path
// through a heap would be most of what a batch costs.

/** The numbers of a handle. */
const PREVIOUS = 0
const NEXT = 1
const AT = 2
const WIDTH = 3
const NOT_HERE = -2

export class ServiceOrder {
  private readonly links: number[] = []
  private last = -1
  /** The handle that was served least recently, or -1. */
  first = -1

  /** The batch that last served it. */
  servedAt(handle: number): number {
    return this.links[handle * WIDTH + AT]
  }

  /** Puts it behind all others: `at` never falls. */
  note(handle: number, at: number): void {
    const { links } = this
    while (links.length <= handle * WIDTH) links.push(NOT_HERE, NOT_HERE, 0)
    links[handle * WIDTH + AT] = at
    if (this.last === handle) return
    this.remove(handle)
    links[handle * WIDTH + PREVIOUS] = this.last
    links[handle * WIDTH + NEXT] = -1
    if (this.last < 0) this.first = handle
    else links[this.last * WIDTH + NEXT] = handle
    this.last = handle
  }

  remove(handle: number): void {
    const { links } = this
    const at = handle * WIDTH
    if (at >= links.length || links[at + NEXT] === NOT_HERE) return
    const previous = links[at + PREVIOUS]
    const next = links[at + NEXT]
    if (previous < 0) this.first = next
    else links[previous * WIDTH + NEXT] = next
    if (next < 0) this.last = previous
    else links[next * WIDTH + PREVIOUS] = previous
    links[at + NEXT] = NOT_HERE
  }
}

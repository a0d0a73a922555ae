// A model's shapes by key.
//
// In pages of neighbours, not one map of all: with tens of thousands of lanes an arrival finds its shape
// with one cache miss, and the pages of lengths that nobody sends are not there.

import type { Shape } from './models.js'

const PAGE_SHIFT = 6
const PAGE_MASK = (1 << PAGE_SHIFT) - 1

class Page {
  count = 0
  readonly shapes: (Shape | undefined)[] = new Array(PAGE_MASK + 1).fill(undefined)
}

export class ShapesByKey {
  size = 0
  private readonly pages = new Map<number, Page>()

  get(key: number): Shape | undefined {
    return this.pages.get(key >>> PAGE_SHIFT)?.shapes[key & PAGE_MASK]
  }

  add(shape: Shape): void {
    const { key } = shape
    let page = this.pages.get(key >>> PAGE_SHIFT)
    if (page === undefined) {
      page = new Page()
      this.pages.set(key >>> PAGE_SHIFT, page)
    }
    page.shapes[key & PAGE_MASK] = shape
    page.count++
    this.size++
  }

  delete({ key }: Shape): void {
    const page = this.pages.get(key >>> PAGE_SHIFT)!
    page.shapes[key & PAGE_MASK] = undefined
    page.count--
    this.size--
    if (page.count === 0) this.pages.delete(key >>> PAGE_SHIFT)
  }

  *values(): IterableIterator<Shape> {
    for (const { shapes } of this.pages.values()) {
      for (const shape of shapes) if (shape !== undefined) yield shape
    }
  }
}

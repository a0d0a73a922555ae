// Waits for conditions instead of for time: whoever changes something says so, and the conditions that
// others wait for are looked at again.

export class Changes {
  readonly #waiting = new Set<{ condition: () => boolean; resolve: () => void }>()

  happened(): void {
    for (const waiter of this.#waiting) {
      if (!waiter.condition()) continue
      this.#waiting.delete(waiter)
      waiter.resolve()
    }
  }

  until(condition: () => boolean): Promise<void> {
    if (condition()) return Promise.resolve()
    return new Promise((resolve) => this.#waiting.add({ condition, resolve }))
  }
}

/** A promise and the key to it. */
export function gate<T = void>(): { promise: Promise<T>; open: (value: T) => void } {
  let open!: (value: T) => void
  const promise = new Promise<T>((resolve) => {
    open = resolve
  })
  return { promise, open }
}

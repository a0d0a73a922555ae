// Bytes on their way to the disk, bounded: who would go over waits until enough has arrived.

export class ByteBudget {
  usedBytes = 0
  #waiting: (() => void)[] = []

  constructor(readonly maxBytes: number) {}

  get isFull(): boolean {
    return this.usedBytes >= this.maxBytes
  }

  add(bytes: number): void {
    this.usedBytes += bytes
  }

  remove(bytes: number): void {
    this.usedBytes -= bytes
    if (this.isFull) return
    const waiting = this.#waiting
    this.#waiting = []
    for (const resolve of waiting) resolve()
  }

  /** Resolves when there is room. What is added after it may go over by one piece of each who waited. */
  async room(): Promise<void> {
    while (this.isFull)
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve)
      })
  }
}

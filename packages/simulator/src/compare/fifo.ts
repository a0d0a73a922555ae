// Items that wait at a peer, in order of arrival: their lengths and when they were accepted.

export class Fifo {
  #lengths: number[] = []
  #accepted: number[] = []
  #head = 0
  tokens = 0

  get count(): number {
    return this.#lengths.length - this.#head
  }

  push(length: number, acceptedNs: number): void {
    this.#lengths.push(length)
    this.#accepted.push(acceptedNs)
    this.tokens += length
  }

  lengthAt(place: number): number {
    return this.#lengths[this.#head + place]
  }

  acceptedAt(place: number): number {
    return this.#accepted[this.#head + place]
  }

  drop(count: number): void {
    for (let i = 0; i < count; i++) this.tokens -= this.lengthAt(i)
    this.#head += count
    if (this.#head < 4096 || this.#head * 2 < this.#lengths.length) return
    this.#lengths = this.#lengths.slice(this.#head)
    this.#accepted = this.#accepted.slice(this.#head)
    this.#head = 0
  }
}

// How long to wait before the next try: 100 ms, doubling to 5 s, spread so that consumers whose
// broker came back do not all knock at once.

const FIRST_MS = 100
const MOST_MS = 5_000
/** A connection that stood this long was a good one: the next loss starts from the beginning. */
const GOOD_AFTER_MS = 10_000

/** @param random in [0, 1): the delay lies between half and the whole of its step */
export function backoffMs(failures: number, random: number): number {
  const step = Math.min(MOST_MS, FIRST_MS * 2 ** Math.min(failures, 16))
  return Math.round(step * (0.5 + random / 2))
}

export class Backoff {
  #failures = 0

  nextMs(): number {
    const delay = backoffMs(this.#failures, Math.random())
    this.#failures += 1
    return delay
  }

  /** A connection ended after `stoodMs`; a broker that drops us at once is not knocked at harder. */
  ended(stoodMs: number): void {
    if (stoodMs >= GOOD_AFTER_MS) this.#failures = 0
  }
}

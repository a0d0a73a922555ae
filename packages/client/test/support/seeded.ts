// Numbers that a seed decides, so that a test that failed can be run again.

export const SEED = Number(process.env.FABRIC_SEED ?? 1)

/** mulberry32. @returns whole numbers from 0 below a bound. */
export function seeded(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * below)
  }
}

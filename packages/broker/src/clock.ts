// The clock of the process: integer nanoseconds since the clock was made, only growing. The core
// gets its `now` from here and nowhere else.

export interface Clock {
  now(): number
}

/** Counting from zero keeps nanoseconds exact in a double for 104 days, then within 2 ns. */
export function monotonicClock(): Clock {
  const [startSeconds, startNs] = process.hrtime()
  let last = 0
  return {
    now() {
      const [seconds, ns] = process.hrtime()
      last = Math.max(last, (seconds - startSeconds) * 1e9 + (ns - startNs))
      return last
    },
  }
}

export const NS_PER_MS = 1e6
export const NS_PER_SECOND = 1e9

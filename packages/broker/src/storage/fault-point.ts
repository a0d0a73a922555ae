// Test point below the store: [0] is the errno that a write or a transaction fails with (0: none), [1] the
// milliseconds that it takes.

/** @throws an error as the system's */
export function passFaultPoint(faults: Int32Array | null): void {
  if (faults === null) return
  const delayMs = Atomics.load(faults, 1)
  if (delayMs > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, delayMs)
  const code = Atomics.load(faults, 0)
  if (code !== 0) throw Object.assign(new Error(`injected errno ${code}`), { code })
}

// Waiting for a condition instead of for a time.

const DEADLINE_MS = 60_000

/** The first value of `check` that is not null, false or undefined; it is asked every few ms. */
export async function until<T>(
  check: () => T | Promise<T>,
  deadlineMs = DEADLINE_MS,
): Promise<NonNullable<T>> {
  const deadline = Date.now() + deadlineMs
  for (;;) {
    const value = await check()
    if (value !== null && value !== undefined && value !== false) return value as NonNullable<T>
    if (Date.now() > deadline) throw new Error(`the condition never came: ${check}`)
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}

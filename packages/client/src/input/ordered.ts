// Work on several values at once, results in the order of the values.

/** At most `concurrency` calls of `work` are under way; a failure ends the sequence. */
export async function* mapOrdered<T, R>(
  source: AsyncIterable<T>,
  concurrency: number,
  work: (value: T) => Promise<R>,
): AsyncGenerator<R> {
  const window: Promise<R>[] = []
  for await (const value of source) {
    const result = work(value)
    result.catch(() => {}) // seen when its turn comes
    window.push(result)
    if (window.length >= concurrency) yield window.shift()!
  }
  while (window.length > 0) yield window.shift()!
}

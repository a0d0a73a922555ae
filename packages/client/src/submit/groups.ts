// Gathers items into request bodies of bounded size. A slow source is not held up: what is there is
// sent when the next item does not come within lingerMs.
import { encodeItem, type SubmitItem } from './item.js'

export interface Entry<T extends SubmitItem> {
  readonly item: T
  /** Place in the source, from 0. */
  readonly index: number
  readonly line: string
}

export interface GroupLimits {
  readonly items: number
  readonly bytes: number
  readonly lingerMs: number
}

/** Bodies large enough to make a request's own cost small, small enough to resend. */
export const GROUP_LIMITS: GroupLimits = { items: 1000, bytes: 1 << 20, lingerMs: 20 }

const LINGERED = Symbol('lingered')

/** Resolves after `ms`, or never once stopped. */
function timer(ms: number): { elapsed: Promise<typeof LINGERED>; stop: () => void } {
  let stop = () => {}
  const elapsed = new Promise<typeof LINGERED>((resolve) => {
    const handle = setTimeout(() => resolve(LINGERED), ms)
    stop = () => clearTimeout(handle)
  })
  return { elapsed, stop }
}

class Group<T extends SubmitItem> {
  entries: Entry<T>[] = []
  #bytes = 0

  constructor(readonly limits: GroupLimits) {}

  /** Whether `line` would make the group too large; an empty group takes any line. */
  isFullFor(line: string): boolean {
    const { items, bytes } = this.limits
    const { length } = this.entries
    return length > 0 && (length >= items || this.#bytes + line.length > bytes)
  }

  add(entry: Entry<T>): void {
    this.entries.push(entry)
    this.#bytes += entry.line.length
  }

  take(): Entry<T>[] {
    const { entries } = this
    this.entries = []
    this.#bytes = 0
    return entries
  }
}

type Source<T> = AsyncIterable<T> | Iterable<T>

export function groupsOf<T extends SubmitItem>(
  source: Source<T>,
  limits: GroupLimits = GROUP_LIMITS,
): AsyncGenerator<Entry<T>[]> {
  return Symbol.asyncIterator in source
    ? groupsOfAsync(source, limits)
    : groupsOfSync(source, limits)
}

async function* groupsOfSync<T extends SubmitItem>(
  source: Iterable<T>,
  limits: GroupLimits,
): AsyncGenerator<Entry<T>[]> {
  const group = new Group<T>(limits)
  let index = 0
  for (const item of source) {
    const line = encodeItem(item)
    if (group.isFullFor(line)) yield group.take()
    group.add({ item, index: index++, line })
  }
  if (group.entries.length > 0) yield group.take()
}

async function* groupsOfAsync<T extends SubmitItem>(
  source: AsyncIterable<T>,
  limits: GroupLimits,
): AsyncGenerator<Entry<T>[]> {
  const items = source[Symbol.asyncIterator]()
  const group = new Group<T>(limits)
  let index = 0
  let linger = timer(limits.lingerMs)
  try {
    for (let next = items.next(); ; ) {
      const got =
        group.entries.length === 0 ? await next : await Promise.race([next, linger.elapsed])
      if (got === LINGERED) {
        yield group.take()
        continue
      }
      if (got.done) break
      const line = encodeItem(got.value)
      if (group.isFullFor(line)) yield group.take()
      if (group.entries.length === 0) {
        linger.stop()
        linger = timer(limits.lingerMs)
      }
      group.add({ item: got.value, index: index++, line })
      next = items.next()
    }
    if (group.entries.length > 0) yield group.take()
  } finally {
    linger.stop()
    await items.return?.()
  }
}

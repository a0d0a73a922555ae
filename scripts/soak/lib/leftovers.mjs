// What processes that are gone could have left: 2 MiB pages, files, descriptors.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'

const PAGE_BYTES = 2 << 20

function number(file, pattern) {
  try {
    return Number(pattern.exec(readFileSync(file, 'utf8'))?.[1] ?? 0)
  } catch {
    return 0 // a process that ended meanwhile
  }
}

/** Pages in use that no living process maps. Not what the pool had before: others use it too. */
function orphanedPages() {
  const used =
    number('/proc/meminfo', /HugePages_Total:\s+(\d+)/) -
    number('/proc/meminfo', /HugePages_Free:\s+(\d+)/)
  let mapped = 0
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name)))
    mapped += (number(`/proc/${pid}/status`, /HugetlbPages:\s+(\d+)/) * 1024) / PAGE_BYTES
  return Math.max(0, Math.round(used - mapped))
}

const ours = (name) => /^(fabric|shm-ring|soak)/.test(name)
const files = () => [
  ...readdirSync('/dev/shm').map((name) => `/dev/shm/${name}`),
  ...readdirSync(tmpdir()).filter((name) => ours(name) && name.endsWith(String(process.pid))),
]

export const openDescriptors = (pid) => readdirSync(`/proc/${pid}/fd`).length

/** Without what Node opens for itself on first use, such as a device of random numbers. */
const ownDescriptors = () =>
  readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return /^(\/memfd:|socket:|pipe:)/.test(readlinkSync(`/proc/self/fd/${fd}`))
    } catch {
      return false // the one that lists them
    }
  }).length

/** The first true answer of `check`, or its last one after the deadline. */
export async function eventually(check, deadlineMs = 20_000) {
  const deadline = Date.now() + deadlineMs
  for (;;) {
    const answer = await check()
    if (answer || Date.now() > deadline) return answer
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

export class Leftovers {
  #files = files()
  #pages = orphanedPages()
  #descriptors = ownDescriptors()

  /** Pages of a process that just died, or is just being mapped by another, settle within moments. */
  async count(tally) {
    const clean = await eventually(() => orphanedPages() <= this.#pages)
    tally.count(
      clean,
      `no 2 MiB page without a process (${orphanedPages()}, ${this.#pages} before)`,
    )
    const more = files().filter((file) => !this.#files.includes(file))
    tally.count(more.length === 0, `no file left behind ${more.join(' ')}`)
    const closed = await eventually(() => ownDescriptors() <= this.#descriptors)
    tally.count(closed, `no descriptor left open (${ownDescriptors()})`)
  }
}

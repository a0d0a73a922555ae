// One contestant of `bench core`: fills its queue once, then runs a round whenever it is asked.
import { gather } from './gather.mjs'
import { SteadyQueue } from './steady.mjs'

const { items, round, ...shape } = JSON.parse(process.argv[2])
const queue = new SteadyQueue({ ...shape, withTokens: shape.withTokens ?? false })
queue.fill(items)
// Compiled, and the channels filled, before the first round.
queue.turn(Math.max(round, 100_000))

const copy = shape.withTokens ? gather(queue.core.items, items) : null

function cpuNs(work) {
  const from = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(from)
  return (user + system) * 1000
}

process.on('message', () => {
  process.send({
    core: cpuNs(() => queue.turn(round)) / round,
    copy: copy === null ? null : cpuNs(() => copy(round)) / round,
  })
})
process.send('ready')

// So many rounds at a steady queue, for perf stat to count.
import { SteadyQueue } from './steady.mjs'

const { items, round, rounds, withTokens = false, ...shape } = JSON.parse(process.argv[2])
const queue = new SteadyQueue({ ...shape, withTokens })
queue.fill(items)
for (let i = 0; i < rounds; i++) queue.turn(round)

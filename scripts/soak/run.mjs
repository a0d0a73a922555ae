// The long runs: node scripts/soak/run.mjs NAME [--rounds N | --minutes N | --seeds N [--first N]] [--items N]
// [--kinds broker,client] (of broker-kill)
// What each shows and how long it takes stands in docs/testing.md. The last line is the count.
import { parseArgs } from 'node:util'
import { Tally } from './lib/tally.mjs'
import { core } from './runs/core.mjs'
import { coreMutations } from './runs/core-mutations.mjs'
import { brokerKill, diskTorn, memoryFlood } from './runs/durable.mjs'
import { fuzz } from './runs/fuzz.mjs'
import { hostile } from './runs/hostile.mjs'
import { kill } from './runs/kill.mjs'
import { records } from './runs/records.mjs'
import { restart } from './runs/restart.mjs'
import { sanitizers } from './runs/sanitizers.mjs'
import { storeKill, storeModel } from './runs/store.mjs'
import { stress } from './runs/stress.mjs'
import { maxWait, starvation } from './runs/waits.mjs'

const RUNS = {
  core,
  'core-mutations': coreMutations,
  starvation,
  'max-wait': maxWait,
  'ring-stress': stress,
  'ring-kill': kill,
  'ring-restart': restart,
  'ring-hostile': hostile,
  'ring-sanitizers': sanitizers,
  'ring-fuzz': fuzz,
  'ring-records': records,
  'store-model': storeModel,
  'store-kill': storeKill,
  'broker-kill': brokerKill,
  'disk-torn': diskTorn,
  'memory-flood': memoryFlood,
}

const option = { type: 'string' }
const numbers = { rounds: option, minutes: option, seeds: option, first: option, items: option }
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { ...numbers, kinds: option },
})
const { kinds, ...counts } = values
const run = RUNS[positionals[0]]
const limits = Object.fromEntries(
  Object.entries(counts).map(([name, text]) => [name, Number(text)]),
)
if (run === undefined || Object.values(limits).some((limit) => !(limit > 0))) {
  process.stderr.write(
    `usage: run.mjs ${Object.keys(RUNS).join('|')} [--rounds N | --minutes N | --seeds N [--first N]] [--items N] [--kinds KIND,KIND]\n`,
  )
  process.exit(2)
}
const tally = new Tally()
await run(tally, { ...limits, kinds })
tally.end()

// The store's tests that are driven by chance, for as long as asked: against its model (a seed a test),
// and with kill -9 (rounds on the same data, begun anew now and then).
import { runVitest } from '../lib/programs.mjs'

const KILLS_OF_ONE_STORE = 25

export function storeModel(tally, { seeds = 200 }) {
  const what = 'seeds of the store against its model'
  runVitest(tally, what, 'broker', ['test/storage/model.test.ts'], { SEEDS: String(seeds) })
}

export function storeKill(tally, { rounds = 200 }) {
  const stores = Math.ceil(rounds / KILLS_OF_ONE_STORE)
  for (let seed = 1; seed <= stores; seed++) {
    const kills = Math.min(KILLS_OF_ONE_STORE, rounds - (seed - 1) * KILLS_OF_ONE_STORE)
    const environment = { KILL_ROUNDS: String(kills), SEED: String(seed) }
    const what = `${kills} times kill -9 of a process that appends and settles`
    runVitest(tally, what, 'broker', ['test/storage/kill.test.ts'], environment)
  }
}

// I7 at full size: what is few, late, long or rare beside a bulk of --items.
import { runVitest } from '../lib/programs.mjs'

export function starvation(tally, { items = 1_000_000 }) {
  const what = `few items beside ${items}, a late job behind ${10 * items}, simulated`
  const environment = {
    FABRIC_BULK_ITEMS: String(items),
    NODE_OPTIONS: '--max-old-space-size=8192',
  }
  runVitest(tally, what, 'simulator', ['test/starvation.test.ts'], environment)
}

export function maxWait(tally, { items = 1_000_000 }) {
  const what = `an item with a wait of 20 ms behind ${items}, real processes`
  const environment = { FABRIC_BULK_ITEMS: String(items) }
  runVitest(tally, what, 'broker', ['test/server/max-wait.test.ts'], environment)
}

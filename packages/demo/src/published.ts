// The figures of the dashboard, ours beside those of the same job under the original's plain rules.
import type { BrokerState } from '@fabric/broker'
import { itemsLeft, settlementPromises } from './promises.js'
import { count, fixed, percent } from './report.js'
import type { DemoRun } from './run.js'

/** What is told of a run, row by row. */
function rows({ figures, seconds }: DemoRun): readonly (readonly [string, string])[] {
  const { state, items } = figures
  const { batches, cleanup, gate, assembly } = state
  const { all, normal } = batches.fill
  return [
    ['items a second', count(Math.round(items / seconds))],
    ['batches', count(batches.count)],
    ['normal batches', count(batches.normal.count)],
    ['items in normal batches', percent(batches.normal.items / items)],
    ['fill of normal batches, p50', fixed(normal.p50)],
    ['fill of normal batches, p90', fixed(normal.p90)],
    ['fill of normal batches, p99', fixed(normal.p99)],
    ['fill of all batches, p10', fixed(all.p10)],
    ['fill of all batches, p50', fixed(all.p50)],
    ['padding waste', percent(batches.paddingWaste ?? 0)],
    ['closed by the item limit', count(batches.closedBy.item_limit ?? 0)],
    ['assembly, mean', `${fixed(assembly.meanUs, 1)} us`],
    ['gate held', `${(gate.heldNs / 1e9).toFixed(3)} s (${gate.reason})`],
    ['cleanup entries', count(cleanup.entries)],
    ['cleanup batches', count(cleanup.batches)],
    ['idle during the input', idleOf(state)],
    ['items left', count(itemsLeft(state))],
  ]
}

function idleOf({ consumers }: BrokerState): string {
  return consumers.map((each) => percent(each.idleShareDuringInput ?? 0)).join(', ')
}

/** Prints both, and what the plain run must keep too: that all items end once, and well. */
export function printBeside(ours: DemoRun, published: DemoRun): boolean {
  const theirs = new Map(rows(published))
  const table = [
    ['', 'ours', 'as published'],
    ...rows(ours).map(([name, value]) => [name, value, theirs.get(name)!]),
  ]
  const widths = [0, 1, 2].map((at) => Math.max(...table.map((row) => row[at].length)))
  console.log()
  for (const row of table) {
    console.log(
      row
        .map((cell, at) => cell.padEnd(widths[at]))
        .join('  ')
        .trimEnd(),
    )
  }
  console.log()
  const promised = settlementPromises(published.figures)
  for (const { what, kept } of promised) {
    console.log(`${kept ? '  kept' : 'BROKEN'}  as published: ${what}`)
  }
  return promised.every(({ kept }) => kept)
}

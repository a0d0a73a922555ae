// Takes what cannot be read out of use, within a transaction: the bytes move to the table `quarantine`,
// the counts follow, and the operator is told. Nothing of it disappears.
import { type Counters, shapeName } from './counters.js'
import type { Environment } from './environment.js'
import { placeOf, readBig, shapeKey, TABLES, type TableName } from './layout.js'
import { countMarks } from './recount.js'
import type { StoreProblem } from './store.js'

/** Key in `quarantine`: the table's number, then the key there. */
export const quarantineKey = (table: TableName, key: Buffer): Buffer =>
  Buffer.concat([Buffer.from([TABLES.indexOf(table)]), key])

/** null: it is gone already. */
export function setAside(
  tables: Environment['tables'],
  counters: Counters,
  table: 'items' | 'results',
  key: Buffer,
): StoreProblem | null {
  const bytes = tables[table].getBinary(key)
  if (bytes === undefined && tables.marks.getBinary(key) === undefined) return null
  if (bytes !== undefined) {
    tables.quarantine.put(quarantineKey(table, key), bytes)
    tables[table].remove(key)
  }
  return table === 'items' ? loseItems(tables, counters, key) : loseResults(key)
}

function loseItems(tables: Environment['tables'], counters: Counters, key: Buffer): StoreProblem {
  const marks = tables.marks.getBinary(key)
  if (marks !== undefined) {
    tables.quarantine.put(quarantineKey('marks', key), marks)
    tables.marks.remove(key)
  }
  const { job, model, paddedLength, firstSequence } = placeOf(key)
  const shape = { model, paddedLength }
  const counted = counters.job(job).shapes.get(shapeName(shape)) ?? { items: 0, tokens: 0 }
  const left = countMarks(tables.marks, shapeKey(job, shape))[0] ?? { items: 0, tokens: 0 }
  const items = counted.items - left.items
  const tokens = counted.tokens - left.tokens
  if (items > 0) {
    counters.add(job, shape, -items, -tokens)
    counters.change(job).lost += items
  }
  return {
    message: `a block of job ${job} cannot be read (model ${model}, length ${paddedLength}, from sequence ${firstSequence}): ${items} items are lost; its bytes are kept in the table quarantine`,
    lost: items > 0 ? { job, ...shape, items, tokens } : null,
  }
}

function loseResults(key: Buffer): StoreProblem {
  return {
    message: `results of job ${key.readUInt32BE(0)} from offset ${readBig(key, 4)} cannot be read: readers go on behind them; their bytes are kept in the table quarantine`,
    lost: null,
  }
}

// Takes what cannot be read out of use, within a transaction: the bytes move to the table `quarantine`,
// the counts follow, and the operator is told. Nothing of it disappears.

import { BlockRow } from './block-row.js'
import { type Counters, shapeName } from './counters.js'
import type { Environment } from './environment.js'
import { placeOf, readBig, shapeKey, TABLES, type TableName } from './layout.js'
import { countBlocks } from './recount.js'
import type { Segments } from './segments.js'
import type { StoreProblem } from './store.js'

/** Key in `quarantine`: the table's number, then the key there. */
export const quarantineKey = (table: TableName, key: Buffer): Buffer =>
  Buffer.concat([Buffer.from([TABLES.indexOf(table)]), key])

/** What stands in `quarantine` of a block: u32 bytes of its row, the row, and what could be read of its bytes. */
function foundBlock(row: Buffer, bytes: Uint8Array | null): Buffer {
  const length = Buffer.alloc(4)
  length.writeUInt32LE(row.byteLength)
  return Buffer.concat([length, row, bytes ?? Buffer.alloc(0)])
}

/** null: it is gone already. */
export function setAside(
  { tables, log }: Pick<Environment, 'tables' | 'log'>,
  counters: Counters,
  segments: Segments,
  table: 'blocks' | 'results',
  key: Buffer,
): StoreProblem | null {
  const found = tables[table].getBinary(key)
  if (found === undefined) return null
  const value = Buffer.from(found)
  tables[table].remove(key)
  if (table === 'results') {
    tables.quarantine.put(quarantineKey(table, key), value)
    return loseResults(key)
  }
  const place = BlockRow.decode(value)?.place
  if (place === undefined) segments.recountLater()
  else segments.add(place.segment, -1, -place.bytes)
  const bytes = place === undefined ? null : log.read(place)
  tables.quarantine.put(quarantineKey(table, key), foundBlock(value, bytes))
  return loseItems(tables, counters, key)
}

function loseItems(tables: Environment['tables'], counters: Counters, key: Buffer): StoreProblem {
  const { job, model, paddedLength, firstSequence } = placeOf(key)
  const shape = { model, paddedLength }
  const counted = counters.job(job).shapes.get(shapeName(shape)) ?? { items: 0, tokens: 0 }
  const left = countBlocks(tables.blocks, shapeKey(job, shape))[0] ?? { items: 0, tokens: 0 }
  const items = counted.items - left.items
  const tokens = counted.tokens - left.tokens
  if (items > 0) {
    counters.add(job, shape, -items, -tokens)
    counters.change(job).lost += items
  }
  return {
    message: `a block of job ${job} cannot be read (model ${model}, length ${paddedLength}, from sequence ${firstSequence}): ${items} items are lost; what is there of it is kept in the table quarantine`,
    lost: items > 0 ? { job, ...shape, items, tokens } : null,
  }
}

function loseResults(key: Buffer): StoreProblem {
  return {
    message: `results of job ${key.readUInt32BE(0)} from offset ${readBig(key, 4)} cannot be read: readers go on behind them; their bytes are kept in the table quarantine`,
    lost: null,
  }
}

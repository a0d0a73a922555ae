// SQLite by better-sqlite3, WAL, called without a thread in between. Items go into a table by rowid, the
// form in which it is fastest: no index of ids, so nothing is looked up.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { idOf, RESULT_BYTES, tokensOf, WARM_ITEMS } from './items.mjs'

const require = createRequire(import.meta.url)

/** better-sqlite3's own build would fetch a binary; it is compiled here, once. @returns why not */
export function buildSqlite() {
  try {
    ;new (require('better-sqlite3'))(':memory:').close()
    return null
  } catch {
    const nodeDir = dirname(dirname(process.execPath))
    const gyp = join(nodeDir, 'lib/node_modules/npm/node_modules/node-gyp/bin/node-gyp.js')
    const built = spawnSync(
      process.execPath,
      [gyp, 'rebuild', '--release', `--nodedir=${nodeDir}`],
      {
        cwd: dirname(require.resolve('better-sqlite3/package.json')),
        encoding: 'utf8',
      },
    )
    if (built.status === 0) return null
    return `better-sqlite3 cannot be compiled: ${built.stderr.trim().split('\n').at(-1)}`
  }
}

/** @param {{ folder: string, items: number, group: number, sync: 'always' | 'relaxed' }} run */
export async function sqlite({ folder, items, group, sync }) {
  const Database = require('better-sqlite3')
  const dir = mkdtempSync(join(folder, 'sqlite-'))
  const database = new Database(join(dir, 'items.db'))
  database.pragma('journal_mode = WAL')
  database.pragma(`synchronous = ${sync === 'always' ? 'FULL' : 'NORMAL'}`)
  database.exec(
    'CREATE TABLE items (sequence INTEGER PRIMARY KEY, id TEXT, length INTEGER, body BLOB);' +
      'CREATE TABLE results (offset INTEGER PRIMARY KEY, id TEXT, value BLOB)',
  )
  accept(database, 1, WARM_ITEMS, group)
  pack(database, group)
  const acceptSeconds = accept(database, WARM_ITEMS + 1, items, group)
  const packed = sync === 'always' ? pack(database, group) : { settled: items, seconds: Number.NaN }
  if (packed.settled !== items) throw new Error(`sqlite settled ${packed.settled} of ${items}`)
  database.close()
  rmSync(dir, { recursive: true })
  return { accept: items / acceptSeconds, pack: items / packed.seconds }
}

/** @returns seconds */
function accept(database, first, items, group) {
  const rows = Array.from({ length: items }, (_, i) => [
    first + i,
    idOf(first + i),
    Buffer.from(tokensOf(first + i).buffer),
  ])
  const insert = database.prepare('INSERT INTO items VALUES (?, ?, 256, ?)')
  const start = process.hrtime.bigint()
  for (let at = 0; at < items; at += group) {
    const end = Math.min(items, at + group)
    database.exec('BEGIN')
    for (let i = at; i < end; i++) insert.run(rows[i][0], rows[i][1], rows[i][2])
    database.exec('COMMIT')
  }
  return Number(process.hrtime.bigint() - start) / 1e9
}

function pack(database, size) {
  const select = database.prepare(
    'SELECT * FROM items WHERE sequence > ? ORDER BY sequence LIMIT ?',
  )
  const remove = database.prepare('DELETE FROM items WHERE sequence = ?')
  const keep = database.prepare('INSERT INTO results (id, value) VALUES (?, ?)')
  const value = Buffer.alloc(RESULT_BYTES)
  const start = process.hrtime.bigint()
  let last = 0
  let settled = 0
  for (;;) {
    const batch = select.all(last, size)
    if (batch.length === 0) break
    database.exec('BEGIN')
    for (const { sequence, id } of batch) {
      settled += remove.run(sequence).changes
      keep.run(id, value)
    }
    database.exec('COMMIT')
    last = batch.at(-1).sequence
  }
  return { settled, seconds: Number(process.hrtime.bigint() - start) / 1e9 }
}

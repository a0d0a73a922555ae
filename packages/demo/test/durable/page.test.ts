// docs/durability.md names a test for each promise: each of them is there.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '../../../..')
const page = readFileSync(join(ROOT, 'docs/durability.md'), 'utf8')

test('each row of the fault matrix names tests that there are', () => {
  const [, matrix] = page.split('## What dies or fills up')
  const rows = matrix
    .split('\n## ')[0]
    .split('\n')
    .filter((line) => /^\| (?!---|what )/.test(line))
  expect(rows.length).toBeGreaterThan(20)
  for (const row of rows) {
    const named = [...row.matchAll(/`(packages\/[^`]+\.test\.ts)`:((?:,? "[^"]+")+)/g)]
    expect(named.length, row).toBeGreaterThan(0)
    for (const [, file, titles] of named) {
      expect(existsSync(join(ROOT, file)), file).toBe(true)
      const source = readFileSync(join(ROOT, file), 'utf8')
      for (const [, title] of titles.matchAll(/"([^"]+)"/g))
        expect(source.includes(title), `${file}: ${title}`).toBe(true)
    }
  }
})

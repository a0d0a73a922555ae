// `fabric simulate` as users call it: what goes where, and how it ends.
import { spawnSync } from 'node:child_process'
import {
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { BIN, fabric, start } from './support/command.js'

function folderWith(scenario: object): { folder: string; file: string } {
  const folder = mkdtempSync(join(tmpdir(), 'fabric-cli-simulate-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'rush hour.json')
  writeFileSync(file, JSON.stringify(scenario))
  return { folder, file }
}

const scenario = (count = 40) => ({
  config: { mode: 'memory', maxWaitMs: 0 },
  consumers: [
    {
      name: 'gpu0',
      batchSize: 8,
      tokens: 64,
      inputLength: 8,
      model: 1,
      service: { fixedUs: 10, perPaddedTokenNs: 100 },
    },
  ],
  events: [{ atUs: 0, submitMany: { count, lengths: [3, 8, 5] }, thenFlush: true }],
})

const types = (stdout: string): string[] =>
  stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line).type)

it('fabric simulate: one JSON line per effect, the summary last; --summary prints it alone', async () => {
  const { file } = folderWith(scenario())
  const all = await fabric(['simulate', file])
  expect([all.code, all.stderr]).toEqual([0, ''])
  expect(types(all.stdout).at(0)).toBe('register')
  expect(types(all.stdout).at(-1)).toBe('summary')
  const alone = await fabric(['simulate', file, '--summary'])
  expect(alone.stdout).toBe(`${all.stdout.trimEnd().split('\n').at(-1)}\n`)
  const piped = await fabric(['simulate', '-'], { input: readFileSync(file, 'utf8') })
  expect(piped.stdout).toBe(all.stdout)
})

it('fabric simulate: a reader that goes away ends it without an error', async () => {
  const { file } = folderWith(scenario(300_000))
  const running = start(['simulate', file])
  running.child.stdout!.once('data', () => running.child.stdout!.destroy())
  const { code, stderr } = await running.ended
  expect([code, stderr]).toEqual([0, ''])
})

it('fabric simulate: many megabytes through a pipe come whole, and nothing is warned of', async () => {
  const { file } = folderWith(scenario(100_000))
  const { code, stdout, stderr } = await fabric(['simulate', file])
  expect([code, stderr]).toEqual([0, ''])
  expect(types(stdout).at(-1)).toBe('summary')
})

it.each([
  ['lines', []],
  ['the summary', ['--summary']],
  ['a comparison', ['--compare']],
])('fabric simulate: %s that cannot be written are an error', (_, flags) => {
  const { file } = folderWith(scenario(30_000))
  const full = openSync('/dev/full', 'w')
  const { status, stderr } = spawnSync(process.execPath, [BIN, 'simulate', file, ...flags], {
    stdio: ['ignore', full, 'pipe'],
    encoding: 'utf8',
  })
  closeSync(full)
  expect(status).toBe(1)
  expect(stderr).toMatch(/^fabric: the output cannot be written .*ENOSPC.*FABRIC_OUTPUT/)
})

it('fabric simulate: a refused scenario names the key, and the exit code is 1', async () => {
  const { file } = folderWith({ ...scenario(), config: { spanWast: [0] } })
  const { code, stdout, stderr } = await fabric(['simulate', file])
  expect([code, stdout]).toEqual([1, ''])
  expect(stderr).toBe('fabric: config.spanWast: unknown key (FABRIC_SCENARIO)\n')
  const missing = await fabric(['simulate', `${file}.not`])
  expect([missing.code, missing.stderr]).toEqual([1, expect.stringContaining('cannot be read')])
})

it('fabric simulate --as-published: the plain rules, which hold a small job at the gate', async () => {
  const { file } = folderWith(scenario(4))
  const ours = JSON.parse((await fabric(['simulate', file, '--summary'])).stdout)
  const plain = await fabric(['simulate', file, '--summary', '--as-published'])
  expect([ours.left, JSON.parse(plain.stdout).left]).toEqual([0, 4])
})

it('fabric simulate --compare: a table for people, the same as JSON for programs', async () => {
  const { file } = folderWith(scenario())
  const { stdout } = await fabric(['simulate', file, '--compare'])
  const rules = ['first-come padded budget', 'first-come fixed count', 'sorted windows', 'ours']
  for (const rule of rules) expect(stdout).toMatch(new RegExp(`^${rule}`, 'm'))
  expect(stdout).toMatch(/^sorting everything first +5 /m)
  const json = JSON.parse((await fabric(['simulate', file, '--compare', '--json'])).stdout)
  expect(json.rules.map((row: { batches: number }) => row.batches)).toEqual([5, 5, 5, 5])
})

it('fabric simulate --html: writes the page, named after the scenario, and prints the summary', async () => {
  const { folder, file } = folderWith(scenario())
  const page = join(folder, 'page.html')
  const { stdout } = await fabric(['simulate', file, '--html', page])
  expect(types(stdout)).toEqual(['summary'])
  expect(readFileSync(page, 'utf8')).toContain('<h1>rush hour</h1>')
  const refused = await fabric(['simulate', file, '--html', join(folder, 'no', 'page.html')])
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('FABRIC_OUTPUT')])
  expect(types(refused.stdout)).toEqual(['summary'])
})

it.each([
  [['--json'], '--json goes with --compare'],
  [['--compare', '--summary'], '--summary does not go with --compare'],
  [['--compare', '--html', 'x.html'], '--html does not go with --compare'],
])('fabric simulate %j: is a wrong call', async (flags, message) => {
  const { file } = folderWith(scenario())
  const { code, stderr } = await fabric(['simulate', file, ...flags])
  expect([code, stderr]).toEqual([2, expect.stringContaining(message)])
  expect(existsSync('x.html')).toBe(false)
})

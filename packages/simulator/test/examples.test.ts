// The scenarios that a newcomer runs: each runs to its end, shows what it says, and is listed.
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { type Line, readScenario, Simulation } from '../src/index.js'

const folder = fileURLToPath(new URL('../examples/', import.meta.url))
const names = readdirSync(folder).filter((name) => name.endsWith('.json'))

/** A type of line that the scenario is there to show. */
const SHOWS: Readonly<Record<string, Line['type']>> = {
  'first-batches.json': 'cleanup',
  'consumer-dies.json': 'reclaim',
  'silent-consumer.json': 'late',
  'full-queue.json': 'refuse',
}

it.each(names)('example: %s runs to its end and leaves nothing', (name) => {
  const seen = new Set<string>()
  const simulation = new Simulation(readScenario(folder + name), {
    onLine: ({ type }) => seen.add(type),
  })
  while (simulation.advance());
  expect(simulation.summary().left).toBe(0)
  expect(seen).toContain(SHOWS[name] ?? 'dispatch')
})

it('example: every one stands in the list with a line of its own', () => {
  const readme = readFileSync(`${folder}README.md`, 'utf8')
  expect(names.length).toBeGreaterThan(5)
  for (const name of names) expect(readme).toContain(`| \`${name}\` |`)
})

// What the core costs: CPU time an item over queued items, lanes and consumers, and memory an item.
import { fork, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { barChart } from '../lib/bar-chart.mjs'
import { atMost } from '../lib/promises.mjs'
import { pairedRatio, summary } from '../lib/stats.mjs'
import { inTurns } from '../lib/turns.mjs'

const QUEUED = [10_000, 1_000_000, 10_000_000]
const QUEUED_QUICK = [10_000, 100_000, 1_000_000]
const LANES = [8, 512, 8192, 65_536]
const CONSUMERS = [1, 32, 1000]

const HELD = 'bytes an item beyond tokens and id, heap + external'

const METHOD = [
  'Each contestant is a process of its own that holds a queue of so many items. A round asks of the core what the engine asks for 100,000 items (submit in lists of 1,000, dispatch, taken, results), new items replacing those that leave; CPU time of the process, garbage collection and compiler with it.',
  'Queued items: 8 lanes, items of 1 to 64 tokens with their ids, batches of 64, two consumers. The gather-copy moves the token ids of as many items of the same queue, in random order, into a cycled buffer of 4 MiB, in the same process and round.',
  'Lanes and consumers: lengths only, drawn evenly over the lanes, batches of 8, so that 65,536 lanes are ready at 15 items each; batches of 64 with 1,000 consumers.',
  'Contestants take turns; ratios are medians of the ratio within a round.',
  'Memory: items of 1 to 8 tokens with ids of 8 bytes; slope from the second to the last size, after collections, less 4 bytes a token and 8 an id. heap + external is what V8 says it holds, slabs of 32 MiB as a whole; resident is what the kernel says. Emptied: after the ids have been forgotten too (S36), over a start that has seen two bursts of the size before the last.',
]

/** @param {{ quick: boolean, say: (line: string) => void }} options */
export async function compare({ quick, say }) {
  const memory = await measureMemory(quick ? QUEUED_QUICK : QUEUED)
  say('memory measured')
  const contestants = await open(contestantsOf(quick), say)
  const rounds = await inTurns(contestants, quick ? 3 : 15, say)
  for (const { child } of contestants) child.disconnect()
  return result(contestants, rounds, memory, await countInstructions(quick, say), quick)
}

function contestantsOf(quick) {
  const million = quick ? 100_000 : 1_000_000
  const round = quick ? 20_000 : 100_000
  const queued = (quick ? QUEUED_QUICK : QUEUED).map((items) => ({
    key: `${count(items)} queued`,
    kind: 'queued',
    work: { items, lanes: 8, consumers: 2, batchSize: 64, withTokens: true, round },
  }))
  const lanes = (quick ? LANES.slice(0, 3) : LANES).map((lanes) => ({
    key: `${count(lanes)} lanes`,
    kind: 'lanes',
    work: { items: million, lanes, consumers: 2, batchSize: 8, round },
  }))
  const consumers = CONSUMERS.map((consumers) => ({
    key: `${count(consumers)} consumer${consumers > 1 ? 's' : ''}`,
    kind: 'consumers',
    work: { items: million, lanes: 8, consumers, batchSize: quick ? 16 : 64, round },
  }))
  return [...queued, ...lanes, ...consumers]
}

/** One after the other, so that no two fill their queues at once. */
async function open(contestants, say) {
  const opened = []
  for (const { key, kind, work } of contestants) {
    const child = fork(join(import.meta.dirname, 'cost-process.mjs'), [JSON.stringify(work)])
    await answer(child)
    opened.push({ key, kind, work, child, run: () => ask(child) })
    say(`${key}: filled`)
  }
  return opened
}

function ask(child) {
  child.send('round')
  return answer(child)
}

function answer(child) {
  return new Promise((resolve, reject) => {
    child.once('message', resolve)
    child.once('exit', (code) => reject(new Error(`a contestant ended with ${code}`)))
  })
}

async function measureMemory(sizes) {
  const file = join(import.meta.dirname, 'memory-process.mjs')
  // V8's young generation grows to 2 x 16 MiB by what happens to be alive at a collection, and never
  // shrinks: it has its full size from the start.
  const execArgv = ['--expose-gc', '--min-semi-space-size=16']
  const child = fork(file, [JSON.stringify(sizes)], { execArgv })
  const { start, filled, emptied, forgotten } = await answer(child)
  const [from, to] = filled.slice(-2)
  const items = to.items - from.items
  const bytes = ((to.tokens - from.tokens) * 4) / items + 8
  const slope = (of) => (of(to) - of(from)) / items - bytes
  const resident = ({ rss }) => rss
  const held = ({ heapAndExternal }) => heapAndExternal
  return {
    resident: slope(resident),
    held: slope(held),
    emptied: emptied.rss / start.rss,
    forgotten: forgotten.rss / start.rss,
    heldForgotten: forgotten.heapAndExternal / start.heapAndExternal,
    stages: { start, filled, emptied, forgotten },
  }
}

/**
 * Instructions an item, from two runs that differ by the rounds; null where the machine does not
 * count them (virtual machines often do not).
 */
async function countInstructions(quick, say) {
  const probe = perf(['true'])
  if (probe === null) say('instructions: perf stat does not count them here')
  if (probe === null) return null
  const found = {}
  for (const { key, work } of contestantsOf(quick)) {
    const at = (rounds) =>
      perf([
        process.execPath,
        join(import.meta.dirname, 'instructions.mjs'),
        JSON.stringify({ ...work, rounds }),
      ])
    found[key] = (at(6) - at(1)) / (5 * work.round)
  }
  return found
}

function perf(command) {
  const flags = ['stat', '-x', ';', '-e', 'instructions:u']
  const { stderr } = spawnSync('perf', [...flags, ...command], { encoding: 'utf8' })
  const line = stderr?.split('\n').find((one) => one.includes('instructions')) ?? ''
  const value = Number(line.split(';')[0] || Number.NaN)
  return Number.isFinite(value) ? value : null
}

const count = (number) => number.toLocaleString('en-US')

function result(contestants, rounds, memory, instructions, quick) {
  const cost = (key) => rounds.get(key).map(({ core }) => core)
  const keys = (kind) => contestants.filter((one) => one.kind === kind).map(({ key }) => key)
  const ratio = (key, base) => pairedRatio(cost(key), cost(base)).median
  const [smallest, middle, largest] = keys('queued')
  const copy = rounds.get(largest).map((round) => round.copy)
  const spread = (kind) => {
    const [base, ...others] = keys(kind)
    return others.map((key) => atMost(`CPU an item: ${key} over ${base}`, ratio(key, base), 1.5))
  }
  const promises = [
    atMost(`CPU an item: ${largest} over ${middle}`, ratio(largest, middle), 1.3),
    atMost(`CPU an item: ${largest} over ${smallest}`, ratio(largest, smallest), 3),
    atMost(
      `CPU an item: ${largest} over a random gather-copy`,
      pairedRatio(cost(largest), copy).median,
      3,
    ),
    ...spread('lanes'),
    ...spread('consumers'),
    ...instructionPromises(contestants, instructions),
    atMost('bytes an item beyond tokens and id, resident', memory.resident, 80),
    // Slabs of 32 MiB count whole: over less than a million items that is no measure.
    ...(quick ? [] : [atMost(HELD, memory.held, 80)]),
    atMost('resident after the queue emptied, over the start', memory.forgotten, 1.2),
  ]
  return {
    title: 'Cost of the scheduling core',
    method: METHOD,
    promises,
    tables: [costTable(contestants, rounds, instructions), memoryTable(memory)],
    charts: quick ? [] : [chart(contestants, rounds)],
    data: { rounds: Object.fromEntries(rounds), memory, instructions },
  }
}

function instructionPromises(contestants, instructions) {
  if (instructions === null) return []
  return ['queued', 'lanes', 'consumers'].flatMap((kind) => {
    const [base, ...others] = contestants.filter((one) => one.kind === kind)
    return others.map(({ key }) =>
      atMost(
        `instructions an item: ${key} over ${base.key}`,
        instructions[key] / instructions[base.key],
        1.3,
      ),
    )
  })
}

function costTable(contestants, rounds, instructions) {
  const figure = (values) => {
    const { median, p10, p90 } = summary(values)
    return `${median.toFixed(0)} (${p10.toFixed(0)}-${p90.toFixed(0)})`
  }
  return {
    title: 'Nanoseconds of CPU time an item',
    head: ['contestant', 'core', 'gather-copy', 'instructions'],
    rows: contestants.map(({ key }) => {
      const all = rounds.get(key)
      return [
        key,
        figure(all.map(({ core }) => core)),
        all[0].copy === null ? '-' : figure(all.map(({ copy }) => copy)),
        instructions === null ? 'not counted here' : instructions[key].toFixed(0),
      ]
    }),
  }
}

function memoryTable({ stages: { start, filled, emptied, forgotten } }) {
  const mebibytes = (bytes) => (bytes / 2 ** 20).toFixed(0)
  const row = (name, { rss, heapAndExternal }) => [name, mebibytes(rss), mebibytes(heapAndExternal)]
  return {
    title: 'Memory, MiB',
    head: ['', 'resident', 'heap + external'],
    rows: [
      row('start', start),
      ...filled.map((one) => row(`${count(one.items)} queued`, one)),
      row('emptied', emptied),
      row('and its ids forgotten', forgotten),
    ],
  }
}

function chart(contestants, rounds) {
  const title = 'CPU time of the core an item'
  const bars = contestants.map(({ key }) => [summary(rounds.get(key).map(({ core }) => core))])
  const groups = contestants.map(({ key }) => key)
  return {
    file: 'core.svg',
    alt: title,
    svg: barChart({ title, unit: 'ns', groups, series: ['core'], bars }),
  }
}

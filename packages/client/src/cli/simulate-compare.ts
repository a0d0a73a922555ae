// `fabric simulate --compare`: the workload under each rule, as a table or as JSON.
import { type Comparison, compare, type Figures, type Scenario } from '@fabric/simulator'
import { count, duration, percent, table } from './format.js'
import { LineOutput } from './line-output.js'

export async function printComparison(scenario: Scenario, asJson: boolean): Promise<void> {
  // Signals and a closing pipe are noticed between two stretches of work.
  const compared = await compare(scenario, () => new Promise((resolve) => setImmediate(resolve)))
  const text = asJson ? JSON.stringify(compared) : comparisonText(compared)
  const output = new LineOutput(process.stdout)
  output.write(text)
  await output.end()
}

const ratio = (value: number): string => value.toFixed(3)
const milliseconds = (us: number): string => `${(us / 1000).toFixed(us < 100_000 ? 1 : 0)} ms`
const time = (us: number): string => (us < 1e6 ? milliseconds(us) : duration(us / 1e6))

export function comparisonText({ rules, sort, ours, leftOut }: Comparison): string {
  const head = ['rule', 'batches', 'fill p1', 'p50', 'waste', 'idle', 'makespan', 'mean wait']
  const rows = rules.map((one) => row(one))
  const sorted = [
    'sorting everything first',
    count(sort.batches),
    ratio(sort.fill.p1),
    ratio(sort.fill.p50),
    percent(sort.waste),
    '-',
    '-',
    '-',
  ]
  const { summary } = ours
  return [
    table([head, ...rows.slice(0, -1), sorted, ...rows.slice(-1)]),
    '',
    'fill, waste: budget tokens over the budget, 1 - actual / padded tokens; idle: until the input ended;',
    'wait: from acceptance until a consumer takes it. Fill of all but the last batches of each consumer.',
    '',
    table([
      ['items', `${count(summary.items)}, ${count(summary.left)} left`],
      [
        'normal batches',
        `${percent(ours.normalShare)} of the items until the input ended, ${count(ours.normalItemLimit)} closed by the item limit`,
      ],
      ['shape switches', count(summary.switches)],
      [
        'gate',
        `held for ${time(summary.gate.heldUs)}, opened because: ${summary.gate.reason ?? '-'}`,
      ],
      ...(leftOut.length > 0 ? [['left out', leftOut.join(', ')]] : []),
    ]),
  ].join('\n')
}

function row({ rule, batches, fill, waste, idleShare, makespanUs, meanWaitUs }: Figures): string[] {
  return [
    rule,
    count(batches),
    ratio(fill.steady.p1),
    ratio(fill.steady.p50),
    percent(waste),
    percent(idleShare),
    time(makespanUs),
    time(meanWaitUs),
  ]
}

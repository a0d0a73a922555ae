// node bench/run.mjs NAME [--check] [--quick] [--items N]: one comparison, its table, and bench/results/NAME.*
import { loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { machine } from './lib/machine.mjs'
import { holds } from './lib/promises.mjs'
import { report } from './lib/report.mjs'

const COMPARISONS = {
  ring: () => import('./ring/compare.mjs'),
  'ring-kernels': () => import('./ring/compare-kernels.mjs'),
  assembly: () => import('./assembly/compare.mjs'),
  store: () => import('./store/compare.mjs'),
  packing: () => import('./core/packing.mjs'),
  study: () => import('./core/study.mjs'),
  core: () => import('./core/compare.mjs'),
  backlog: () => import('./backlog/compare.mjs'),
}

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    check: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
    items: { type: 'string' },
  },
})
const name = positionals[0]
if (positionals.length !== 1 || !Object.hasOwn(COMPARISONS, name)) {
  process.stderr.write(`bench: name one of ${Object.keys(COMPARISONS).join(', ')}\n`)
  process.exit(2)
}

const where = machine()
const startedAt = performance.now()
const { compare } = await COMPARISONS[name]()
const say = (line) => process.stderr.write(`bench ${name}: ${line}\n`)
const items = options.items === undefined ? undefined : Number(options.items)
if (items !== undefined && !(Number.isInteger(items) && items > 0)) {
  process.stderr.write('bench: --items must be a whole number\n')
  process.exit(2)
}
const result = await compare({ quick: options.quick, items, say })
where.loadAtEnd = loadavg()
  .map((value) => value.toFixed(2))
  .join(' ')
const flags = Object.entries(options).flatMap(([flag, value]) => {
  if (value === true) return [` --${flag}`]
  return typeof value === 'string' ? [` --${flag} ${value}`] : []
})
report(name, result, {
  machine: where,
  command: `npm run -s bench -- ${name}${flags.join('')}`,
  quick: options.quick,
  seconds: (performance.now() - startedAt) / 1000,
})

const broken = result.promises.filter((checked) => !holds(checked))
for (const { promise, measured, bound } of broken) {
  say(`broken: ${promise}: ${measured.toFixed(3)}, bound ${bound}`)
}
process.exit(options.check && broken.length > 0 ? 1 : 0)

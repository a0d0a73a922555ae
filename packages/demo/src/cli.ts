// `npm run demo`: a real transformer model embeds a real corpus on two consumers, through the broker.
import { createReadStream, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import { IdBuffer, type Tokenizer } from '@fabric/client'
import { raggedCorpus, type Text } from './corpus.js'
import { demoModel } from './model.js'
import type { LogLine } from './processes.js'
import type { ResultCounts } from './promises.js'
import { packFirstCome, packSorted } from './references.js'
import { printReport } from './report.js'
import {
  CONSUMERS,
  CONTRACT,
  CORPUS,
  MAX_QUEUED_TOKENS,
  ROUND_TO,
  SAMPLES,
  SEED,
} from './settings.js'
import { type Sample, worstCosine } from './verify.js'
import { Workload } from './workload.js'

const USAGE = `npm run demo -- [--kill-consumer] [--huge-pages require|try|off] [--no-progress]

  --kill-consumer   kill -9 the first consumer in the middle of the run
  --huge-pages      what the rings stand on (default: try)
  --no-progress     plain lines instead of a progress bar
`

function parse() {
  try {
    const { values } = parseArgs({
      options: {
        'kill-consumer': { type: 'boolean', default: false },
        'huge-pages': { type: 'string', default: 'try' },
        'no-progress': { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    })
    return values
  } catch (error) {
    process.stderr.write(`demo: ${(error as Error).message}\n\n${USAGE}`)
    return process.exit(2)
  }
}

const encoder = (tokenizer: Tokenizer) => (text: string) => {
  const ids = new IdBuffer(512)
  tokenizer.encode(text, ids)
  return ids.ids.subarray(0, ids.length)
}

function hugePagesFree(): number {
  const meminfo = readFileSync('/proc/meminfo', 'utf8')
  return Number(/^HugePages_Free:\s+(\d+)/m.exec(meminfo)?.[1] ?? 0)
}

/** The lines of the broker's and the consumers' logs that tell the story of the run. */
function tell(name: string, line: LogLine): void {
  const told = /registered|gate opened|cleanup|died|reclaimed|ended:|drained/.test(line.msg)
  if (told && (name === 'broker' || /warn|error/.test(String(line.level))))
    process.stderr.write(`  ${name}: ${line.msg}\n`)
}

/** Reads the output once: counts it, and picks every n-th vector as a sample. */
async function readResults(
  path: string,
  texts: readonly Text[],
): Promise<{ counts: ResultCounts; samples: Sample[] }> {
  const ids = new Set<string>()
  const samples: Sample[] = []
  const every = Math.floor(texts.length / SAMPLES)
  let [lines, completed, inInputOrder] = [0, 0, true]
  for await (const line of createInterface({ input: createReadStream(path) })) {
    const { id, status, result } = JSON.parse(line) as {
      id: string
      status: string
      result: number[]
    }
    if (lines % every === 0 && texts[lines]?.id === id)
      samples.push({ ...texts[lines], vector: result })
    if (texts[lines]?.id !== id) inInputOrder = false
    ids.add(id)
    lines += 1
    if (status === 'completed') completed += 1
  }
  return { counts: { lines, distinctIds: ids.size, completed, inInputOrder }, samples }
}

async function main(): Promise<number> {
  const options = parse()
  if (options.help) {
    process.stdout.write(USAGE)
    return 0
  }
  const { dir, tokenizer } = demoModel(join(import.meta.dirname, '../../../.cache'))
  const encode = encoder(tokenizer)
  const texts = raggedCorpus(CORPUS, SEED, (text) => encode(text).length <= CONTRACT.inputLength)
  const lengths = texts.map(({ text }) => encode(text).length)
  process.stderr.write(
    `demo: ${texts.length} texts of ${Math.min(...lengths)} to ${Math.max(...lengths)} tokens, all-MiniLM-L6-v2 on ${CONSUMERS.length} consumers of ${CONTRACT.tokens} tokens a batch\n`,
  )
  const workload = new Workload({
    contract: CONTRACT,
    consumers: CONSUMERS,
    modelDir: dir,
    brokerArgs: [
      '--max-queued-tokens',
      String(MAX_QUEUED_TOKENS),
      '--huge-pages',
      options['huge-pages'],
    ],
    clientArgs: [
      '--tokenizer',
      join(dir, 'tokenizer.json'),
      '--workers',
      '1',
      ...(options['no-progress'] ? ['--no-progress'] : []),
    ],
    ...(options['kill-consumer'] ? { killAt: { share: 0.5, items: texts.length } } : {}),
    onLog: tell,
  })
  onInterrupt(workload)
  try {
    writeFileSync(workload.input, `${texts.map((text) => JSON.stringify(text)).join('\n')}\n`)
    const free = hugePagesFree()
    const { state, summary, killed } = await workload.run()
    const { counts, samples } = await readResults(workload.output, texts)
    const contract = { ...CONTRACT, roundTo: ROUND_TO }
    const kept = printReport(
      {
        state,
        sort: packSorted(lengths, contract),
        firstCome: packFirstCome(lengths, contract),
        items: texts.length,
        results: counts,
        worstCosine: (await worstCosine(dir, samples, encode)).cosine,
        killed,
        hugePagesFree: options['huge-pages'] === 'off' ? 0 : free,
      },
      summary.seconds,
    )
    return kept ? 0 : 1
  } finally {
    await workload.close()
  }
}

/** Ctrl-C ends every process and removes every file before the demo goes. */
function onInterrupt(workload: Workload): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      process.stderr.write('\ndemo: interrupted, cleaning up\n')
      workload.close().finally(() => process.exit(signal === 'SIGINT' ? 130 : 143))
    })
  }
}

main().then(
  (code) => process.exit(code),
  (error) => {
    process.stderr.write(`demo: ${error instanceof Error ? error.message : error}\n`)
    process.exit(1)
  },
)

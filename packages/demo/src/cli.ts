// `npm run demo`: a real transformer model embeds a real corpus on two consumers, through the broker.
import { readFileSync, writeFileSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { IdBuffer, type Tokenizer } from '@fabric/client'
import { raggedCorpus } from './corpus.js'
import { demoModel } from './model.js'
import { readResults } from './output.js'
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
import { Story } from './story.js'
import { worstCosine } from './verify.js'
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
  const story = new Story(process.stderr.isTTY && !options['no-progress'])
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
    onLog: (name, line) => story.tell(name, line),
  })
  onInterrupt(workload)
  try {
    writeFileSync(workload.input, `${texts.map((text) => JSON.stringify(text)).join('\n')}\n`)
    const free = hugePagesFree()
    const { state, summary, killed } = await workload.run()
    story.release()
    const { counts, samples } = await readResults(workload.output, texts, SAMPLES)
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
    story.release()
    await workload.close()
  }
}

let isInterrupted = false

/** Ctrl-C ends every process and removes every file before the demo goes. */
function onInterrupt(workload: Workload): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => {
      if (isInterrupted) return
      isInterrupted = true
      process.stderr.write('\ndemo: interrupted, cleaning up\n')
      workload.close().finally(() => process.exit(128 + constants.signals[signal]))
    })
  }
}

main().then(
  (code) => process.exit(code),
  (error) => {
    // Processes that end by our own signal are no news; the handler ends this one when they are gone.
    if (isInterrupted) return
    process.stderr.write(`demo: ${error instanceof Error ? error.message : error}\n`)
    process.exit(1)
  },
)

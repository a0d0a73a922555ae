// `npm run demo`: a real transformer model embeds a real corpus on two consumers, through the broker.
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { IdBuffer, type Tokenizer } from '@fabric/client'
import { raggedCorpus } from './corpus.js'
import { demoModel } from './model.js'
import { printBeside } from './published.js'
import { printReport } from './report.js'
import { type DemoSet, isInterrupted, runDemo } from './run.js'
import { CONSUMERS, CONTRACT, CORPUS, SEED } from './settings.js'

const USAGE = `npm run demo -- [--kill-consumer] [--as-published] [--huge-pages require|try|off] [--no-progress]

  --kill-consumer   kill -9 the first consumer in the middle of the run
  --as-published    run it again under the plain rules of the page that describes the original, and
                    print the figures of both side by side
  --huge-pages      what the rings stand on (default: try)
  --no-progress     plain lines instead of a progress bar
`

function parse() {
  try {
    const { values } = parseArgs({
      options: {
        'kill-consumer': { type: 'boolean', default: false },
        'as-published': { type: 'boolean', default: false },
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

function demoSet(): DemoSet {
  const { dir, tokenizer } = demoModel(join(import.meta.dirname, '../../../.cache'))
  const encode = encoder(tokenizer)
  const texts = raggedCorpus(CORPUS, SEED, (text) => encode(text).length <= CONTRACT.inputLength)
  const lengths = texts.map(({ text }) => encode(text).length)
  process.stderr.write(
    `demo: ${texts.length} texts of ${Math.min(...lengths)} to ${Math.max(...lengths)} tokens, all-MiniLM-L6-v2 on ${CONSUMERS.length} consumers of ${CONTRACT.tokens} tokens a batch\n`,
  )
  return { texts, lengths, modelDir: dir, encode }
}

async function main(): Promise<number> {
  const flags = parse()
  if (flags.help) {
    process.stdout.write(USAGE)
    return 0
  }
  const options = {
    killConsumer: flags['kill-consumer'],
    hugePages: flags['huge-pages'],
    progress: !flags['no-progress'],
  }
  const set = demoSet()
  const ours = await runDemo(set, options, [])
  const kept = printReport(ours.figures, ours.seconds)
  if (!flags['as-published']) return kept ? 0 : 1
  process.stderr.write('\ndemo: once more, as published\n')
  const published = await runDemo(set, options, ['--as-published'])
  return printBeside(ours, published) && kept ? 0 : 1
}

main().then(
  (code) => process.exit(code),
  (error) => {
    // Processes that end by our own signal are no news; the handler ends this one when they are gone.
    if (isInterrupted()) return
    process.stderr.write(`demo: ${error instanceof Error ? error.message : error}\n`)
    process.exit(1)
  },
)

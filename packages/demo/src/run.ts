// One run of the demo's corpus through processes of its own, and what came of it.
import { readFileSync, writeFileSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import type { Text } from './corpus.js'
import { readResults } from './output.js'
import type { Figures } from './promises.js'
import { packFirstCome, packSorted } from './references.js'
import { CONSUMERS, CONTRACT, MAX_QUEUED_TOKENS, ROUND_TO, SAMPLES } from './settings.js'
import { Story } from './story.js'
import { worstCosine } from './verify.js'
import { Workload } from './workload.js'

export interface DemoSet {
  readonly texts: readonly Text[]
  /** In tokens, text by text. */
  readonly lengths: readonly number[]
  readonly modelDir: string
  readonly encode: (text: string) => Int32Array
}

export interface DemoOptions {
  readonly killConsumer: boolean
  readonly hugePages: string
  readonly progress: boolean
}

export interface DemoRun {
  readonly figures: Figures
  readonly seconds: number
}

/** @param brokerFlags of this run alone. */
export async function runDemo(
  set: DemoSet,
  options: DemoOptions,
  brokerFlags: readonly string[],
): Promise<DemoRun> {
  const { texts, lengths, modelDir, encode } = set
  const story = new Story(process.stderr.isTTY && options.progress)
  const workload = new Workload({
    contract: CONTRACT,
    consumers: CONSUMERS,
    modelDir,
    brokerArgs: [
      '--max-queued-tokens',
      String(MAX_QUEUED_TOKENS),
      '--huge-pages',
      options.hugePages,
      ...brokerFlags,
    ],
    clientArgs: [
      '--tokenizer',
      join(modelDir, 'tokenizer.json'),
      '--workers',
      '1',
      ...(options.progress ? [] : ['--no-progress']),
    ],
    ...(options.killConsumer ? { killAt: { share: 0.5, items: texts.length } } : {}),
    onLog: (name, line) => story.tell(name, line),
  })
  const restore = onInterrupt(workload)
  try {
    writeFileSync(workload.input, `${texts.map((text) => JSON.stringify(text)).join('\n')}\n`)
    const free = hugePagesFree()
    const { state, summary, killed } = await workload.run()
    story.release()
    const { counts, samples } = await readResults(workload.output, texts, SAMPLES)
    const contract = { ...CONTRACT, roundTo: ROUND_TO }
    const figures = {
      state,
      sort: packSorted(lengths, contract),
      firstCome: packFirstCome(lengths, contract),
      items: texts.length,
      results: counts,
      worstCosine: (await worstCosine(modelDir, samples, encode)).cosine,
      killed,
      hugePagesFree: options.hugePages === 'off' ? 0 : free,
    }
    return { figures, seconds: summary.seconds }
  } finally {
    story.release()
    await workload.close()
    restore()
  }
}

function hugePagesFree(): number {
  const meminfo = readFileSync('/proc/meminfo', 'utf8')
  return Number(/^HugePages_Free:\s+(\d+)/m.exec(meminfo)?.[1] ?? 0)
}

let interrupted = false

/** Whether a signal is ending the demo: what its processes say then is no news. */
export const isInterrupted = () => interrupted

/** Ctrl-C ends every process and removes every file before the demo goes. Answers what undoes it. */
function onInterrupt(workload: Workload): () => void {
  const end = (signal: NodeJS.Signals) => {
    if (interrupted) return
    interrupted = true
    process.stderr.write('\ndemo: interrupted, cleaning up\n')
    workload.close().finally(() => process.exit(128 + constants.signals[signal]))
  }
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  for (const signal of signals) process.once(signal, end)
  return () => {
    for (const signal of signals) process.removeListener(signal, end)
  }
}

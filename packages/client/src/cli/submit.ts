// `fabric submit`: sends a file's items, ends the job's input and leaves. Results are for later.
import { FabricClient } from '../client.js'
import { readItems } from '../input/items.js'
import { type InputLine, type ItemLine, isBad, type LineError } from '../input/parse.js'
import { TokenizerPool } from '../tokenizer/pool.js'
import { count } from './format.js'
import { type BrokerOptions, EXIT, type InputFlags } from './options.js'

export async function submitCommand(
  input: string,
  options: BrokerOptions & InputFlags,
): Promise<number> {
  const { tokenizer, workers, textField, idField, model, weight } = options
  const pool = tokenizer === undefined ? null : await TokenizerPool.open({ tokenizer, workers })
  let failed = 0
  const report = (error: LineError) => {
    failed += 1
    const field = error.field === undefined ? '' : `${error.field}: `
    process.stderr.write(`fabric: line ${error.line}: ${field}${error.message} (${error.code})\n`)
  }
  try {
    const blocks = readItems({ input, pool, textField, idField })
    const first = await blocks.next()
    const client = new FabricClient(options)
    const job = await client.createJob({ id: options.job, model, weight })
    const summary = await job.submit(itemsOf(first, blocks, report), {
      onRefused: ({ item, error }) => report({ ...error, line: item.line }),
    })
    process.stderr.write(
      `fabric: ${count(summary.accepted)} items accepted, ${count(summary.duplicate)} known before, ` +
        `${count(failed)} failed; results: fabric results ${job.id} -o FILE\n`,
    )
    process.stdout.write(`${job.id}\n`)
    return failed > 0 ? EXIT.someFailed : EXIT.completed
  } finally {
    await pool?.close()
  }
}

async function* itemsOf(
  first: IteratorResult<InputLine[]>,
  blocks: AsyncGenerator<InputLine[]>,
  report: (error: LineError) => void,
): AsyncGenerator<ItemLine> {
  for (let next = first; !next.done; next = await blocks.next()) {
    for (const line of next.value) {
      if (isBad(line)) report(line.error)
      else yield line
    }
  }
}

// What makes one `fabric run` the same as another: everything that decides what stands in the output.
// How it is run (threads, display, waiting) may change from one start to the next.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { inputIdentity } from '../input/identity.js'
import type { Arguments } from '../output/mark.js'
import { tokenizerFileOf } from '../tokenizer/load.js'
import type { RunOptions } from './options.js'

/** @throws FabricError FABRIC_INPUT, FABRIC_TOKENIZER */
export function runArguments(input: string, options: RunOptions): Arguments {
  const { model, order, textField, idField, tokenizer, job, weight, maxWaitMs } = options
  return {
    'the command': 'run',
    '--model': model,
    '--order': order,
    '--tokenizer (SHA-256)': tokenizer === undefined ? null : digestOf(tokenizer),
    '--text-field': textField,
    '--id-field': idField,
    '--job': job ?? null,
    '--weight': weight ?? null,
    '--max-wait-ms': maxWaitMs ?? null,
    ...inputIdentity(input),
  }
}

const digestOf = (tokenizer: string) =>
  createHash('sha256')
    .update(readFileSync(tokenizerFileOf(tokenizer)))
    .digest('hex')

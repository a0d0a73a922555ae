// `fabric run` where it cannot run: one line that says why, an exit code, nothing left behind.
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RunningBroker } from '@fabric/broker'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { FabricClient } from '../src/index.js'
import { fabric } from './support/command.js'
import { openRealBroker } from './support/real-broker.js'
import { items } from './support/run.js'
import { jsonl, temporaryFolder, writeFile } from './support/texts.js'

describe('fabric run: what cannot run', () => {
  type Change = (args: string[], folder: string) => void
  const cases: [what: string, code: number, message: RegExp, change: Change][] = [
    [
      'an input that is missing',
      1,
      /none\.jsonl cannot be read.*FABRIC_INPUT/,
      (args, folder) => {
        args[1] = join(folder, 'none.jsonl')
      },
    ],
    [
      'an input that is a folder',
      1,
      /cannot be read.*FABRIC_INPUT/,
      (args, folder) => {
        args[1] = folder
      },
    ],
    [
      'an output whose folder is missing',
      1,
      /there is no folder .*none/,
      (args, folder) => {
        args[3] = join(folder, 'none', 'out.jsonl')
      },
    ],
    [
      'an output that is a folder',
      1,
      /is a folder/,
      (args, folder) => {
        mkdirSync(join(folder, 'sub'))
        args[3] = join(folder, 'sub')
      },
    ],
    [
      'a tokenizer that is missing',
      1,
      /no such file.*FABRIC_TOKENIZER/,
      (args, folder) => {
        args.push('--tokenizer', join(folder, 'none'))
      },
    ],
    [
      'text without a tokenizer',
      1,
      /give --tokenizer.*FABRIC_TEXT_NEEDS_TOKENIZER/,
      (args, folder) => {
        writeFile(folder, 'in.jsonl', '{"text":"a"}\n')
        args[1] = join(folder, 'in.jsonl')
      },
    ],
    [
      'a job of another model',
      1,
      /FABRIC_ID_CONFLICT/,
      (args) => {
        args.push('--job', 'taken')
      },
    ],
    [
      'an address without a broker',
      1,
      /no broker answers at http:\/\/127\.0\.0\.1:9 /,
      (args) => {
        args.push('--broker', 'http://127.0.0.1:9')
      },
    ],
    ['an address that is no URL', 2, /must be a URL/, (args) => args.push('--broker', 'localhost')],
    ['a model that is no integer', 2, /whole number/, (args) => args.push('--model', 'bert')],
    [
      'an unknown order',
      2,
      /Allowed choices are input, completion/,
      (args) => args.push('--order', 'x'),
    ],
    ['an unknown flag', 2, /unknown option '--nope'/, (args) => args.push('--nope')],
    ['no output', 2, /required option '-o, --output <file>'/, (args) => args.splice(2, 2)],
  ]

  const socketFolder = mkdtempSync(join(tmpdir(), 'fabric-client-'))
  let broker: RunningBroker
  beforeAll(async () => {
    broker = await openRealBroker(socketFolder)
    await new FabricClient({ broker: broker.httpUrl }).createJob({ id: 'taken', model: 2 })
  })
  afterAll(async () => {
    await broker.stop()
    rmSync(socketFolder, { recursive: true })
  })

  it.each(cases)('ends in one line for %s (exit code %i)', async (_, code, message, change) => {
    const folder = temporaryFolder()
    const output = join(folder, 'out.jsonl')
    const input = writeFile(folder, 'tokens.jsonl', jsonl(items(1)))
    const args = ['run', input, '-o', output, '--model', '1', '--broker', broker.httpUrl]
    change(args, folder)
    const ended = await fabric(args)
    expect(ended).toMatchObject({ code, stdout: '' })
    expect(ended.stderr).toMatch(message)
    expect(ended.stderr.trim().split('\n')).toHaveLength(1)
    expect(existsSync(output)).toBe(false)
    expect(broker.state().items.accepted).toBe(0)
  })
})

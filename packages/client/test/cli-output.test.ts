// Where `fabric run` and `fabric results` write: standard output, pipes, links, and never over what
// is read.
import { execFileSync } from 'node:child_process'
import {
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { fabric, outputOf } from './support/command.js'
import { items, resultOf, setUp } from './support/run.js'
import { jsonl } from './support/texts.js'

const recordsIn = (text: string) =>
  text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
    .sort((a, b) => Number(a.id.slice(1)) - Number(b.id.slice(1)))

describe.each(['input', 'completion'])('outputs that are no plain file, order %s', (order) => {
  const flags = ['--order', order]

  it('are standard output for "-", with the summary on standard error', async () => {
    const { folder, run, write } = await setUp()
    const ended = await fabric(run(write(items(300)), '-o', '-', ...flags))
    expect(ended.code).toBe(0)
    expect(recordsIn(ended.stdout)).toEqual(items(300).map(resultOf))
    expect(ended.stderr).toMatch(/items +300 completed, 0 failed\n/)
    expect(readdirSync(folder)).toEqual(['in.jsonl'])
  })

  it('are written to and not replaced when they are a pipe', async () => {
    const { folder, run, write } = await setUp()
    const pipe = join(folder, 'pipe')
    execFileSync('mkfifo', [pipe])
    const running = fabric(run(write(items(300)), '-o', pipe, ...flags))
    const text = await readFile(pipe, 'utf8')
    expect((await running).code).toBe(0)
    expect(recordsIn(text)).toEqual(items(300).map(resultOf))
    expect(lstatSync(pipe).isFIFO()).toBe(true)
    expect(readdirSync(folder).sort()).toEqual(['in.jsonl', 'pipe'])
  })

  it.each(['a file', 'nothing'])('are what a symlink leads to, %s', async (what) => {
    const { folder, run, write } = await setUp()
    const [target, link] = [join(folder, 'sub', 'real.jsonl'), join(folder, 'link.jsonl')]
    mkdirSync(join(folder, 'sub'))
    if (what === 'a file') writeFileSync(target, 'old\n')
    symlinkSync(join('sub', 'real.jsonl'), link)
    expect((await fabric(run(write(items(3)), '-o', link, ...flags))).code).toBe(0)
    expect(lstatSync(link).isSymbolicLink()).toBe(true)
    expect(recordsIn(readFileSync(target, 'utf8'))).toEqual(items(3).map(resultOf))
    expect(readdirSync(join(folder, 'sub'))).toEqual(['real.jsonl'])
  })
})

describe('an output that is also read', () => {
  const names: [how: string, make: (input: string) => string][] = [
    ['the input itself', (input) => input],
    [
      'a hard link of it',
      (input) => {
        linkSync(input, `${input}.hard`)
        return `${input}.hard`
      },
    ],
    [
      'a symlink to it',
      (input) => {
        symlinkSync(basename(input), `${input}.soft`)
        return `${input}.soft`
      },
    ],
    [
      'the output whose .partial it is',
      (input) => {
        linkSync(input, `${input}.out.partial`)
        return `${input}.out`
      },
    ],
  ]

  it.each(names)('is refused and left as it is: %s', async (_, make) => {
    const { run, write, broker } = await setUp()
    const input = write(items(3))
    const ended = await fabric(run(input, '-o', make(input)))
    expect(ended).toMatchObject({ code: 1, stdout: '' })
    expect(ended.stderr).toMatch(/output.* is the same file as the input .*FABRIC_OUTPUT/)
    expect(readFileSync(input, 'utf8')).toBe(jsonl(items(3)))
    expect(broker.state().items.accepted).toBe(0)
  })

  it('is refused when it is the tokenizer', async () => {
    const { folder, run, write } = await setUp()
    const tokenizer = join(folder, 'tokenizer.json')
    writeFileSync(tokenizer, '{}')
    const ended = await fabric(run(write(items(1)), '-o', tokenizer, '--tokenizer', folder))
    expect(ended.stderr).toContain('FABRIC_OUTPUT')
    expect(readFileSync(tokenizer, 'utf8')).toBe('{}')
  })
})

describe('fabric results', () => {
  it('writes to standard output for "-"', async () => {
    const { broker, output, run, write } = await setUp()
    await fabric(run(write(items(3)), '--job', 'j'))
    const ended = await fabric(['results', 'j', '-o', '-', '--broker', broker.httpUrl])
    expect(recordsIn(ended.stdout)).toEqual(outputOf(output))
    expect(ended.stderr).toContain('3 completed, 0 failed, in standard output')
  })
})

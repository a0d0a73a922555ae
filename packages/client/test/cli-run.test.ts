// `fabric run` in a child process, against a real broker and a real consumer.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { type Handler, ItemError } from '@fabric/consumer'
import { describe, expect, it } from 'vitest'
import { loadTokenizer } from '../src/tokenizer/load.js'
import { IdBuffer } from '../src/tokenizer/tokenizer.js'
import { fabric, outputOf, start } from './support/command.js'
import { gated, items, resultOf, setUp, written } from './support/run.js'
import { BERT_TOKENIZER, glosses, writeFile } from './support/texts.js'

describe('fabric run', () => {
  it('tokenises texts and writes one result for each line, in input order', async () => {
    const { output, run, write } = await setUp()
    const texts = glosses().slice(0, 1500)
    const input = write(texts.map((text) => ({ text })))
    const ended = await fabric(run(input, '--tokenizer', BERT_TOKENIZER, '--summary', 'json'))
    expect(ended).toMatchObject({ code: 0, stderr: '' })

    const tokenizer = loadTokenizer(BERT_TOKENIZER)
    const expected = texts.map((text, i) => {
      const buffer = new IdBuffer()
      tokenizer.encode(text, buffer)
      return resultOf({ id: String(i + 1), tokens: [...buffer.ids.subarray(0, buffer.length)] })
    })
    expect(outputOf(output)).toEqual(expected)
    const tokens = expected.reduce((sum, { result }) => sum + result[0], 0)
    expect(JSON.parse(ended.stdout)).toMatchObject({
      ...{ items: 1500, completed: 1500, failed: 0, duplicates: 0, tokens, retries: 0 },
      transport: ['ring'],
      fill: { mean: expect.any(Number), p50: expect.any(Number) },
      paddingWaste: expect.any(Number),
    })
    expect(JSON.parse(ended.stdout).batches).toBeGreaterThan(1500 / 8 - 1)
  })

  it('writes the same records in completion order', async () => {
    const { output, run, write } = await setUp()
    const input = write(items(300))
    expect((await fabric(run(input, '--order', 'completion'))).code).toBe(0)
    const byId = new Map(outputOf(output).map((line) => [line.id, line]))
    expect(outputOf(output)).toHaveLength(300)
    for (const item of items(300)) expect(byId.get(item.id)).toEqual(resultOf(item))
  })

  it('leaves nothing beside the output, which replaces an older one at the end', async () => {
    const { folder, output, run, write } = await setUp()
    writeFileSync(output, 'old\n')
    expect((await fabric(run(write(items(3))))).code).toBe(0)
    expect(outputOf(output)).toEqual(items(3).map(resultOf))
    expect(readdirSync(folder).sort()).toEqual(['in.jsonl', 'out.jsonl'])
  })

  it('reads standard input: CRLF, blank lines, a byte order mark, no line feed at the end', async () => {
    const { output, run } = await setUp()
    const input = '\ufeff{"tokens":[1]}\r\n\r\n  \n{"id":"b","tokens":[2,3]}\r\n{"tokens":[4]}'
    const ended = await fabric(run('-', '--summary', 'json'), { input })
    expect(ended).toMatchObject({ code: 0, stderr: '' })
    expect(outputOf(output)).toEqual(
      [
        { id: '1', tokens: [1] },
        { id: 'b', tokens: [2, 3] },
        { id: '5', tokens: [4] },
      ].map(resultOf),
    )
  })

  it('takes other field names, and payloads with their length', async () => {
    const { output, run, write } = await setUp({
      handler: (batch) =>
        Array.from({ length: batch.size }, (_, i) => ({ length: batch.lengths[i] })),
    })
    const input = write([
      { doc: 'a', body: 'two words' },
      { doc: 'b', payload: 'AP8=', length: 7 },
    ])
    const names = ['--id-field', 'doc', '--text-field', 'body', '--tokenizer', BERT_TOKENIZER]
    expect(await fabric(run(input, ...names))).toMatchObject({ code: 0, stderr: '' })
    expect(outputOf(output)).toMatchObject([
      { id: 'a', result: { length: 4 } },
      { id: 'b', result: { length: 7 } },
    ])
  })

  it('finds the broker in FABRIC_BROKER, and an empty file is a completed run', async () => {
    const { broker, folder, output } = await setUp()
    const input = writeFile(folder, 'empty.jsonl', '')
    const env = { FABRIC_BROKER: broker.httpUrl }
    const ended = await fabric(['run', input, '-o', output, '--model', '1'], { env })
    expect(ended).toMatchObject({ code: 0, stderr: '' })
    expect(readFileSync(output, 'utf8')).toBe('')
  })

  it('waits while the queue is full and loses nothing', async () => {
    const { output, run, write } = await setUp({ flags: { maxQueuedItems: 600 } })
    const ended = await fabric(run(write(items(1000)), '--summary', 'json'))
    expect(ended.code).toBe(0)
    expect(outputOf(output)).toEqual(items(1000).map(resultOf))
    expect(JSON.parse(ended.stdout).retries).toBeGreaterThan(0)
  })

  it('says how long its items may be held back, and cannot go on with a job of another wait', async () => {
    const { broker, run, write } = await setUp()
    const input = write(items(3))
    const ended = await fabric(run(input, '--job', 'quick', '--max-wait-ms', '40'))
    expect(ended.code).toBe(0)
    const job = await (await fetch(`${broker.httpUrl}/v1/jobs/quick`)).json()
    expect(job).toMatchObject({ state: 'ended', maxWaitMs: 40 })
    const other = await fabric(run(input, '--job', 'quick', '--max-wait-ms', '50'))
    expect(other.code).toBe(1)
    expect(other.stderr).toContain('FABRIC_ID_CONFLICT')
  })

  it('says nothing but errors when quiet, and a readable summary otherwise', async () => {
    const { run, write } = await setUp()
    const input = write(items(20))
    expect(await fabric(run(input, '--quiet'))).toEqual({ code: 0, stdout: '', stderr: '' })
    const { stdout } = await fabric(run(input))
    expect(stdout).toMatch(/items +20 completed, 0 failed\n/)
    expect(stdout).toMatch(/batches +\d+, fill \d/)
  })
})

describe('fabric run: lines and items that fail', () => {
  const bad: [what: string, line: unknown, field: string | undefined, message: RegExp][] = [
    ['not JSON', '{"id":', undefined, /not JSON/],
    ['no object', [1, 2], undefined, /an item is a JSON object, this is an array/],
    ['no text', { id: 'x' }, 'text', /no "text"/],
    ['an empty text', { id: 'x', text: ' ' }, 'text', /empty/],
    ['a text that is no string', { id: 'x', text: 5 }, 'text', /a string, this is 5/],
    ['an id that is no string', { id: 7, text: 'a' }, 'id', /a string, this is 7/],
    ['an empty id', { id: '', text: 'a' }, 'id', /empty/],
    ['tokens that are no list', { id: 'x', tokens: 'abc' }, 'tokens', /array/],
    ['no token', { id: 'x', tokens: [] }, 'tokens', /at least one/],
    ['a token that is no integer', { id: 'x', tokens: [1, -1] }, 'tokens[1]', /integer/],
    ['a payload without length', { id: 'x', payload: 'AP8=' }, 'length', /length/],
    ['a payload that is not base64', { id: 'x', payload: '?', length: 1 }, 'payload', /base64/],
    ['an id that is too long', { id: 'x'.repeat(600), tokens: [1] }, 'id', /512/],
  ]

  it('reports each bad line with its number and field, fails it and goes on', async () => {
    const { output, run, write } = await setUp()
    const good = { id: 'good', tokens: [1, 2] }
    const input = write([...bad.map(([, line]) => line), good])
    const ended = await fabric(run(input, '--tokenizer', BERT_TOKENIZER, '--summary', 'json'))
    expect(ended.code).toBe(3)
    const lines = outputOf(output)
    expect(lines).toHaveLength(bad.length + 1)
    bad.forEach(([what, , field, message], i) => {
      const expected = { status: 'failed', attempts: 0, error: { line: i + 1 } }
      expect(lines[i], what).toMatchObject(expected)
      expect(lines[i].error?.field, what).toBe(field)
      expect(lines[i].error?.message, what).toMatch(message)
    })
    expect(lines.at(-1)).toEqual(resultOf(good))
    expect(ended.stderr).toMatch(/^fabric: line 3: text: there is no "text".* \(FABRIC_INPUT\)$/m)
    expect(ended.stderr).toContain('further lines with errors are only in the output')
    expect(JSON.parse(ended.stdout)).toMatchObject({ items: 14, failed: 13, completed: 1 })
  })

  it.each(['input', 'completion'])(
    'fails a repeated id with another body (order %s)',
    async (order) => {
      const { output, run, write } = await setUp()
      const input = write([
        { id: 'a', tokens: [1] },
        { id: 'a', tokens: [2] },
        { id: 'b', tokens: [3] },
      ])
      const ended = await fabric(run(input, '--order', order))
      expect(ended.code).toBe(3)
      expect(ended.stderr).toMatch(/^fabric: line 2: .*FABRIC_ID_CONFLICT/m)
      const [completed, failed] = ['completed', 'failed'].map((status) =>
        outputOf(output).filter((line) => line.status === status),
      )
      expect(completed.map(({ id }) => id).sort()).toEqual(['a', 'b'])
      expect(failed).toMatchObject([{ id: 'a', error: { code: 'FABRIC_ID_CONFLICT', line: 2 } }])
    },
  )

  it('takes a repeated line with the same body for the same item', async () => {
    const { output, run, write } = await setUp()
    const [a, b] = [
      { id: 'a', tokens: [1] },
      { id: 'b', tokens: [2] },
    ]
    const ended = await fabric(run(write([a, a, b]), '--summary', 'json'))
    expect(ended.code).toBe(0)
    expect(outputOf(output)).toEqual([a, b].map(resultOf))
    expect(JSON.parse(ended.stdout)).toMatchObject({ completed: 2, duplicates: 1 })
  })

  it('passes on what a consumer says of an item that failed, and of one that was cut', async () => {
    const handler: Handler = (batch) =>
      Array.from({ length: batch.size }, (_, i) =>
        batch.itemIds[i] === 'i1'
          ? new ItemError('no such luck')
          : { value: { ok: true }, truncatedTo: 2 },
      )
    const { output, run, write } = await setUp({ handler })
    expect((await fabric(run(write(items(3))))).code).toBe(3)
    expect(outputOf(output)).toMatchObject([
      { id: 'i0', result: { ok: true }, truncatedTo: 2 },
      {
        id: 'i1',
        status: 'failed',
        error: { code: 'FABRIC_ITEM_FAILED', message: 'no such luck' },
      },
      { id: 'i2', status: 'completed' },
    ])
  })

  it('fails a text further down when no tokenizer was given', async () => {
    const { output, run, write } = await setUp()
    const ended = await fabric(run(write([{ tokens: [1] }, { text: 'a' }])))
    expect(ended.code).toBe(3)
    expect(outputOf(output)[1].error).toMatchObject({
      code: 'FABRIC_TEXT_NEEDS_TOKENIZER',
      line: 2,
    })
  })
})

describe('fabric run: broken off', () => {
  it.each(['input', 'completion'])(
    'keeps what is done on Ctrl-C, and goes on with the same job (order %s)',
    async (order) => {
      const gate = gated(200)
      const { output, run, write } = await setUp({ handler: gate.handler })
      const input = write(items(400))
      const flags = ['--order', order, '--job', 'nightly', '--summary', 'json']
      const first = start(run(input, ...flags))
      const file = order === 'input' ? `${output}.partial` : output
      await Promise.all([gate.isStuck, written(file)])
      first.child.kill('SIGINT')
      const { code, stderr } = await first.ended
      expect(code).toBe(130)
      expect(stderr).toMatch(
        /interrupted\nfabric: \d+( of 400)? items are done, kept in .*to go on: the same command$/m,
      )
      const kept = outputOf(file)
      expect(kept.length).toBeGreaterThan(0)
      expect(kept.every(({ status }) => status === 'completed')).toBe(true)

      gate.release()
      const second = await fabric(run(input, ...flags))
      expect(second.code).toBe(0)
      const lines = outputOf(output)
      const inOrder = [...lines].sort((a, b) => Number(a.id.slice(1)) - Number(b.id.slice(1)))
      expect(inOrder).toEqual(items(400).map(resultOf))
      if (order === 'input') expect(lines).toEqual(inOrder)
      expect(JSON.parse(second.stdout).duplicates).toBeGreaterThan(0)
    },
  )

  it('a run that is repeated under its job’s name gives the same output', async () => {
    const { output, run, write } = await setUp()
    const input = write(items(50))
    await fabric(run(input, '--job', 'again'))
    const before = readFileSync(output, 'utf8')
    const ended = await fabric(run(input, '--job', 'again', '--summary', 'json'))
    expect(readFileSync(output, 'utf8')).toBe(before)
    expect(JSON.parse(ended.stdout)).toMatchObject({ completed: 50, duplicates: 50, batches: 0 })
  })

  it('results that come before their line is read are not lost', async () => {
    const { output, run, write } = await setUp()
    const input = write(items(20_000))
    await fabric(run(input, '--job', 'again'))
    const before = readFileSync(output, 'utf8')
    const ended = await fabric(run(input, '--job', 'again', '--summary', 'json'))
    expect(JSON.parse(ended.stdout)).toMatchObject({ completed: 20_000, duplicates: 20_000 })
    expect(readFileSync(output, 'utf8') === before).toBe(true)
  })
})

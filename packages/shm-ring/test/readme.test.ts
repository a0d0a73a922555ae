// The examples of the README run as they stand there.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, it, onTestFinished } from 'vitest'
import { RING_ERROR_CODES } from '../dist/index.js'
import { temporaryFolder } from './harness.js'

const ROOT = join(import.meta.dirname, '..')
const README = readFileSync(join(ROOT, 'README.md'), 'utf8')

/** Each block that begins with the name of its file, written where the package can be imported. */
function writeExamples(): string {
  const folder = temporaryFolder()
  mkdirSync(join(folder, 'node_modules/@fabric'), { recursive: true })
  symlinkSync(ROOT, join(folder, 'node_modules/@fabric/shm-ring'))
  for (const [, name, code] of README.matchAll(/```js\n\/\/ (\w+\.mjs)\n([\s\S]*?)```/g))
    writeFileSync(
      join(folder, name!),
      code!.replaceAll('/run/example.sock', join(folder, 'x.sock')),
    )
  return folder
}

function start(folder: string, name: string): ChildProcess {
  const child = spawn(process.execPath, [join(folder, name)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  return child
}

it('README: writer and reader', async () => {
  const folder = writeExamples()
  const writer = start(folder, 'writer.mjs')
  // It says which pages it got, then listens; the file is there once it does.
  await once(writer.stdout!, 'data')
  await expect.poll(() => existsSync(join(folder, 'x.sock')), { timeout: 20_000 }).toBe(true)
  const reader = start(folder, 'reader.mjs')
  expect(await text(reader.stdout!)).toBe(
    [1, 2, 3].map((n) => `record ${n}: 1024 bytes of ${n}\n`).join(''),
  )
  expect(reader.exitCode ?? (await once(reader, 'exit'))[0]).toBe(0)
  const exit = writer.exitCode === null ? (await once(writer, 'exit'))[0] : writer.exitCode
  expect(exit).toBe(0)
})

it('README: threads', async () => {
  expect(await text(start(writeExamples(), 'threads.mjs').stdout!)).toBe('2 claims\n')
})

it('README: names only codes that exist', () => {
  for (const [code] of README.matchAll(/RING_[A-Z_]+/g))
    expect(Object.keys(RING_ERROR_CODES).concat('RING_ERROR_CODES')).toContain(code)
})

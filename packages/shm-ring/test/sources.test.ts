// What must not stand in the sources at all, for no test run could show its absence.
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'

const native = new URL('../../../native/', import.meta.url)
const read = (path: string) => readFileSync(new URL(path, native), 'utf8').replace(/\/\/.*$/gm, '')
const shared = ['include/fabric/layout.hpp', 'src/ring_writer.cpp', 'src/ring_reader.cpp']

describe('native sources', () => {
  it('keep no lock in shared memory, whose owner could die with it', () => {
    for (const path of shared)
      expect(read(path)).not.toMatch(/mutex|lock_guard|pthread|semaphore|FUTEX_LOCK/i)
  })

  it('take no process id for liveness', () => {
    for (const path of shared.slice(1)) expect(read(path)).not.toMatch(/creator_pid|getpid|kill\(/)
  })

  it('never lower the accepted read position but by raise(), which cannot', () => {
    expect(read('src/ring_writer.cpp')).not.toMatch(/(head_|committed_|taken_)\.(store|exchange)\(/)
  })

  it('name the size of huge pages whenever they ask for some', () => {
    for (const name of readdirSync(new URL('src/', native)).filter((file) =>
      file.endsWith('.cpp'),
    )) {
      for (const line of read(`src/${name}`).split('\n'))
        if (/anonymous_file\(.*kHugeTlb|MAP_HUGETLB/.test(line)) expect(line).toMatch(/kHuge2Mib/)
    }
  })
})

describe('docs/testing.md', () => {
  const page = readFileSync(new URL('../docs/testing.md', native), 'utf8')

  it('names only C++ tests that there are', () => {
    const folders = ['tests/', 'soak/', 'model/']
    const sources = folders.flatMap((folder) =>
      readdirSync(new URL(folder, native))
        .filter((file) => /\.(cpp|txt)$/.test(file))
        .map((file) => readFileSync(new URL(folder + file, native), 'utf8')),
    )
    const text = sources.join('\n')
    const suites =
      'Claim|Interleaving|Hostile|Threads|Wake|Reader|Settle|Memory|Attach|Socket|Ring\\w+|Model\\w+'
    const named = [...page.matchAll(new RegExp(`\`((?:${suites}))\\.(\\w+)\``, 'g'))]
    expect(named.length).toBeGreaterThan(40)
    for (const [, suite, title] of named)
      expect(text, `${suite}.${title}`).toMatch(new RegExp(`\\(${suite},\\s+${title}\\)`))
    for (const [, title] of page.matchAll(/`soak\.(\w+)`/g))
      expect(text, title).toContain(`soak_test(${title} `)
  })

  it('has a row for each of the 45 bugs', () => {
    const rows = [...page.matchAll(/^\| (\d+) \|/gm)].map(([, number]) => Number(number))
    expect(rows).toEqual(Array.from({ length: 45 }, (_, i) => i + 1))
  })
})

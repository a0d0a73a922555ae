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

// Where a figure comes from. Host names and paths are nobody's business and stay out.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { cpus, loadavg, release, totalmem } from 'node:os'

const lines = (file) => {
  try {
    return readFileSync(file, 'utf8').split('\n')
  } catch {
    return []
  }
}
const field = (file, name) =>
  lines(file)
    .find((line) => line.startsWith(name))
    ?.split(':')[1]
    .trim()

function git(...args) {
  const result = spawnSync('git', args, { cwd: import.meta.dirname, encoding: 'utf8' })
  return result.status === 0 ? result.stdout.trim() : ''
}

/** Bytes of the largest cache of the first CPU, or 0. */
export function lastCacheBytes() {
  let largest = 0
  for (let index = 0; index < 8; index++) {
    const size = lines(`/sys/devices/system/cpu/cpu0/cache/index${index}/size`)[0] ?? ''
    const [, number, unit] = /^(\d+)([KM])$/.exec(size) ?? []
    if (number) largest = Math.max(largest, number * (unit === 'K' ? 1024 : 1024 ** 2))
  }
  return largest
}

export function machine() {
  // Results of a run before this one are no change of what is measured.
  const tree = ['--untracked-files=no', '--', ':/', ':(top,exclude)bench/results']
  const changed = git('status', '--porcelain', ...tree) !== ''
  return {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    lastCacheMiB: Math.round(lastCacheBytes() / 1024 ** 2),
    memoryGiB: Math.round(totalmem() / 1024 ** 3),
    kernel: release(),
    node: process.version,
    hugePages: `${field('/proc/meminfo', 'HugePages_Total')} reserved, ${field('/proc/meminfo', 'HugePages_Free')} free at the start`,
    transparentHugePages: (lines('/sys/kernel/mm/transparent_hugepage/enabled')[0] ?? '').trim(),
    commit: (git('rev-parse', '--short=12', 'HEAD') || 'unknown') + (changed ? ' + changes' : ''),
    date: new Date().toISOString().slice(0, 16).replace('T', ' ').concat(' UTC'),
    loadAtStart: loadavg()
      .map((value) => value.toFixed(2))
      .join(' '),
  }
}

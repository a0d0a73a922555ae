// Each fuzz target under libFuzzer for a share of the time, from the kept corpus. What it finds new
// is written to .cache/fuzz; `--seeds N` limits the runs of each instead of the time.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { build, native, root, run } from '../lib/programs.mjs'

const TARGETS = ['reader', 'rctl', 'attach', 'handshake']

export async function fuzz(tally, { minutes = 4, seeds }) {
  const programs = join(build('fuzz'), 'fuzz')
  for (const name of TARGETS) {
    const found = join(root, '.cache', 'fuzz', name)
    mkdirSync(found, { recursive: true })
    const limit =
      seeds === undefined
        ? `-max_total_time=${Math.round((minutes * 60) / TARGETS.length)}`
        : `-runs=${seeds}`
    const kept = join(native, 'fuzz', 'corpus', name)
    const flags = [
      '-max_len=400',
      '-timeout=120',
      limit,
      `-artifact_prefix=${found}/crash-`,
      '-verbosity=0',
    ]
    const { code } = run(
      join(programs, `${name}_fuzz`),
      [...flags, '-print_final_stats=1', found, kept],
      {
        env: {
          ASAN_OPTIONS: 'detect_leaks=1',
          UBSAN_OPTIONS: 'halt_on_error=1:print_stacktrace=1',
        },
      },
    )
    tally.count(code === 0, `${name}: no input breaks it`)
  }
}

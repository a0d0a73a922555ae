// Seeds of the core's simulation on all cores, a worker process each: --seeds N of them, from --first on.
import { fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { bundleSimulation } from '../lib/bundle.mjs'

const root = join(import.meta.dirname, '..', '..', '..')
const SEEDS_A_TURN = 50
const PROGRESS_EVERY_MS = 10_000

export async function core(tally, { seeds = 100_000, first = 1 }) {
  const folder = mkdtempSync(join(tmpdir(), 'fabric-seeds-'))
  try {
    const bundle = await bundleSimulation(join(root, 'packages', 'core'), folder)
    const run = new Run(first, first + seeds)
    const workers = Array.from({ length: availableParallelism() }, () => run.work(bundle))
    await Promise.all(workers)
    run.progress()
    tally.add(run.done - run.failed, run.failed + (seeds - run.done), 'seeds of the core')
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

class Run {
  done = 0
  failed = 0
  began = performance.now()
  toldAt = performance.now()

  constructor(next, end) {
    this.next = next
    this.end = end
  }

  /** Resolves when the worker has nothing left to do, or has died: its seeds count as failed. */
  work(bundle) {
    const worker = fork(join(import.meta.dirname, '..', 'lib', 'seed-worker.mjs'), [bundle], {
      cwd: root,
    })
    worker.on('message', (answer) => {
      this.take(answer)
      const count = Math.min(SEEDS_A_TURN, this.end - this.next)
      if (count === 0) worker.disconnect()
      else worker.send({ first: this.next, count })
      this.next += count
    })
    return new Promise((resolve) => worker.on('exit', resolve))
  }

  take({ count, failures }) {
    this.done += count
    this.failed += failures.length
    for (const text of failures) process.stdout.write(`FAILED ${text}\n`)
    if (performance.now() - this.toldAt < PROGRESS_EVERY_MS) return
    this.toldAt = performance.now()
    this.progress()
  }

  progress() {
    const perMinute = Math.round(this.done / ((performance.now() - this.began) / 60_000))
    process.stdout.write(`${this.done} seeds, ${perMinute} a minute, ${this.failed} failed\n`)
  }
}

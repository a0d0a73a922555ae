// What a queued item costs beside its token and id bytes, and what is left after a burst.

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, it } from 'vitest'
import { Core } from '../src/core.js'
import type { Slabs } from '../src/slabs.js'
import type { State } from '../src/state.js'
import type { SubmitBlock } from '../src/submission.js'
import { config } from './helpers.js'

const ID_BYTES = 16
const LENGTH = 16
const BLOCK = 10_000

setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc') as () => void

/** Flat memory and heap, so that objects beside the columns count too; of slabs what is in use. */
const allocated = (core: Core) => {
  gc()
  gc()
  const { arrayBuffers, heapUsed } = process.memoryUsage()
  const { items, idBlocks } = (core as unknown as { state: State }).state
  const unused = ({ slabs }: { slabs: Slabs }) => slabs.reservedBytes - slabs.usedBytes
  return arrayBuffers + heapUsed - unused(items) - unused(idBlocks)
}

it('memory: at most 80 bytes per queued item beyond token and id bytes, given back after it', () => {
  const core = new Core(config({ gateMaxHoldMs: 0, maxQueuedItems: 1e7, maxQueuedTokens: 1e9 }))
  core.step({ type: 'createJob', job: 1 }, 0)
  const block = emptyBlock()
  const before = allocated(core)
  const slope: number[] = []
  for (let blocks = 1; blocks <= 40; blocks++) {
    fill(block, blocks)
    core.step({ type: 'submit', block }, 0)
    if (blocks === 10 || blocks === 40) slope.push(allocated(core) - before)
  }
  const perItem = (slope[1] - slope[0]) / (30 * BLOCK) - ID_BYTES - LENGTH * 4
  console.log(`memory: ${perItem.toFixed(1)} bytes per queued item beyond token and id bytes`)
  expect(perItem).toBeLessThanOrEqual(80)
  expect(core.counts().waiting.items).toBe(40 * BLOCK)
  core.step({ type: 'deleteJob', job: 1 }, 0)
  core.step({ type: 'tick' }, 0)
  expect(core.counts().waiting.items).toBe(0)
  // The segment that is filled next stays.
  expect(core.counts().arenaBytes).toBe(4 * 1024 * 1024)
  expect(allocated(core) - before).toBeLessThan(1024 * 1024)
})

function emptyBlock(): SubmitBlock {
  return {
    job: 1,
    count: BLOCK,
    model: new Int32Array(BLOCK).fill(1),
    lengths: new Int32Array(BLOCK).fill(LENGTH),
    tokens: new Int32Array(BLOCK * LENGTH),
    ids: new Uint8Array(BLOCK * ID_BYTES),
    idEnds: Uint32Array.from({ length: BLOCK }, (_, i) => (i + 1) * ID_BYTES),
    payloads: null,
    payloadEnds: null,
  }
}

function fill(block: SubmitBlock, round: number): void {
  const view = new DataView(block.ids.buffer)
  for (let i = 0; i < BLOCK; i++) {
    view.setUint32(i * ID_BYTES, i)
    view.setUint32(i * ID_BYTES + 4, round)
  }
}

// Before the broker listens it decides and lays out some made-up batches, on a core and memory of
// their own. JavaScript is slow until it has run a while: without this the first hundred batches of
// a run take ten times as long as all later ones, and a short job has no others.

import type { CoreConfig, DispatchEffect, SubmitBlock } from '@fabric/core'
import { Core } from '@fabric/core'
import { Assembler } from './channels/assembly.js'
import type { Channel } from './channels/channel.js'

const ROUNDS = 16
const ITEMS_PER_ROUND = 512
const LENGTHS = [5, 12, 23, 40, 61, 100]
const CONTRACT = {
  batchSize: 64,
  tokens: 1024,
  inputLength: 128,
  model: 0,
  layout: 'padded',
  roundTo: 8,
  maxInFlight: 1,
} as const

let isWarm = false

/** Once per process. @returns how many batches were laid out. */
export function warmUp(config: CoreConfig): number {
  if (isWarm) return 0
  isWarm = true
  const core = new Core({ ...config, releaseThreshold: 1, gateOpensOn: 'any' })
  const assembler = new Assembler(core.items, config.brokerLife)
  const channel = scratchChannel()
  let now = 0
  let batches = 0
  core.step({ type: 'register', consumer: 1, name: 'warm-up', contract: CONTRACT }, now)
  for (let round = 0; round < ROUNDS; round++) {
    core.step({ type: 'submit', block: makeBlock(round) }, ++now)
    core.step({ type: 'flush', job: null }, ++now)
    for (let effect = dispatch(core, ++now); effect !== null; effect = dispatch(core, ++now)) {
      assembler.write(effect, 'padded', channel)
      settle(core, effect, config.brokerLife, ++now)
      batches += 1
    }
  }
  return batches
}

function dispatch(core: Core, now: number): DispatchEffect | null {
  for (const effect of core.step({ type: 'dispatch' }, now))
    if (effect.type === 'dispatch') return effect
  return null
}

function settle(core: Core, { batch, size }: DispatchEffect, brokerLife: bigint, now: number) {
  const index = Uint32Array.from({ length: size }, (_, row) => row)
  const outcome = new Uint8Array(size)
  core.step({ type: 'taken', consumer: 1, batch }, now)
  core.step({ type: 'results', consumer: 1, brokerLife, batch, index, outcome }, now)
}

function makeBlock(round: number): SubmitBlock {
  const count = ITEMS_PER_ROUND
  const lengths = Int32Array.from({ length: count }, (_, i) => LENGTHS[i % LENGTHS.length])
  const ids = Array.from({ length: count }, (_, i) => `warm-up-${round}-${i}`)
  const bytes = new TextEncoder().encode(ids.join(''))
  let end = 0
  return {
    job: 0,
    count,
    model: new Int32Array(count),
    lengths,
    tokens: new Int32Array(lengths.reduce((sum, length) => sum + length, 0)),
    ids: bytes,
    idEnds: Uint32Array.from(ids, (id) => {
      end += id.length
      return end
    }),
    payloads: null,
    payloadEnds: null,
  }
}

/** Takes every batch at the same place of memory that nobody reads. */
function scratchChannel(): Channel {
  const memory = new ArrayBuffer(1 << 20)
  const space = { memory, byteOffset: 0, commit: () => {}, abort: () => {} }
  return {
    transport: 'ring',
    hasRoom: true,
    viaSocket: 0,
    claim: () => space,
    ring: () => null,
    close: () => {},
  }
}

// One stream through the simulator: what the core alone reaches, and what its items waited.
import { join } from 'node:path'
import { parseScenario, Simulation } from '../../packages/simulator/dist/index.js'
import { scenarioOf, writeTrace } from './stream.mjs'

/** A trace on disk that several runs share. */
export class Trace {
  constructor(folder, name, set, stream, { consumers, load }) {
    this.folder = folder
    this.file = `${name}.csv`
    this.set = set
    this.consumers = consumers
    writeTrace(join(folder, this.file), stream, { tokens: set.tokens, consumers, load })
  }

  /** @param {Record<string, unknown>} config @param {number} [batchSize] */
  scenario(config, batchSize = 2048) {
    const { file: trace, consumers, folder } = this
    const scenario = scenarioOf(this.set, { trace, consumers, batchSize, config })
    return parseScenario(JSON.stringify(scenario), { folder })
  }
}

/** Waits from acceptance until a consumer takes the item, by batch: `Observer` of the simulator. */
class Waits {
  #accepted = new Map()
  #waits = []
  paddedLengths = new Set()
  simulation = null

  effect(effect) {
    if (effect.type !== 'dispatch') return
    const { items, batch, paddedLength } = effect
    this.paddedLengths.add(paddedLength)
    this.#accepted.set(
      batch,
      Float64Array.from(items, (slot) => this.simulation.core.items.acceptedAt(slot)),
    )
  }

  worked(_name, { coreNumber }, fromNs) {
    for (const at of this.#accepted.get(coreNumber)) this.#waits.push(fromNs - at)
    this.#accepted.delete(coreNumber)
  }

  dispatched() {}
  instant() {}

  figures() {
    const sorted = Float64Array.from(this.#waits).sort()
    const ms = (ns) => ns / 1e6
    return {
      meanWaitMs: ms(sorted.reduce((sum, wait) => sum + wait, 0) / sorted.length),
      p99WaitMs: ms(sorted[Math.ceil(0.99 * sorted.length) - 1]),
    }
  }
}

/** Ours alone: all the figures of the design's table, and the waits. */
export function simulate(scenario) {
  const waits = new Waits()
  const simulation = new Simulation(scenario, { observer: waits })
  waits.simulation = simulation
  while (simulation.advance());
  const summary = simulation.summary()
  const shares = Object.values(summary.consumers).map(({ idleShare }) => idleShare)
  return {
    ...waits.figures(),
    left: summary.left,
    batches: summary.batches,
    sortBatches: summary.sort.batches,
    waste: summary.waste,
    sortWaste: summary.sort.waste,
    p1: summary.fill.all.p1,
    p50: summary.fill.all.p50,
    idleShare: shares.reduce((sum, share) => sum + share, 0) / shares.length,
    normalShare: summary.normal.items / summary.items,
    switches: summary.switches,
    paddedLengths: waits.paddedLengths.size,
    makespanUs: summary.makespanUs,
  }
}

// Makes a failing workload small: fewer operations, fewer and shorter items, smaller numbers, a plainer
// configuration, as long as it still breaks the same rule.

import { config } from './helpers.js'
import { Simulation } from './simulate.js'
import type { Operation, Workload } from './workload.js'

export interface Failure {
  readonly message: string
  /** Operations that had begun when it failed. */
  readonly begun: number
}

/** What a workload breaks, or null. */
export function failureOf(workload: Workload): Failure | null {
  const simulation = new Simulation(workload)
  try {
    simulation.run()
    return null
  } catch (error) {
    return { message: String((error as Error).message), begun: simulation.begun }
  }
}

/** The rule that a message names, else its words without numbers: what must stay the same. */
export function ruleOf(message: string): string {
  return /^([SI]\d+[a-z]?):/.exec(message)?.[1] ?? message.split('\n')[0].replace(/\d+/g, 'N')
}

/** @param isOver asked between tries; what is smallest by then is the answer. */
export function shrink(workload: Workload, failure: Failure, isOver: () => boolean): Workload {
  return new Shrinker(ruleOf(failure.message), isOver).shrink({
    ...workload,
    operations: workload.operations.slice(0, failure.begun),
  })
}

class Shrinker {
  constructor(
    private readonly rule: string,
    private readonly isOver: () => boolean,
  ) {}

  private fails(workload: Workload): boolean {
    if (this.isOver()) return false
    const failure = failureOf(workload)
    return failure !== null && ruleOf(failure.message) === this.rule
  }

  shrink(first: Workload): Workload {
    let smallest = first
    for (let size = -1; size !== measure(smallest); ) {
      size = measure(smallest)
      smallest = this.fewerOperations(smallest)
      smallest = this.plainerConfig(smallest)
      smallest = this.smallerOperations(smallest)
      if (this.isOver()) break
    }
    return smallest
  }

  private fewerOperations(workload: Workload): Workload {
    const rebuilt = (operations: readonly Operation[]) => ({ ...workload, operations })
    return rebuilt(this.fewer(workload.operations, (some) => this.fails(rebuilt(some))))
  }

  /** Delta debugging: leaves out halves, then quarters, down to one by one, from the end. */
  private fewer<T>(all: readonly T[], fails: (some: readonly T[]) => boolean): readonly T[] {
    let left = all
    for (let chunk = Math.ceil(left.length / 2); chunk >= 1; chunk = Math.floor(chunk / 2)) {
      for (let end = left.length; end > 0; end -= chunk) {
        const start = Math.max(0, end - chunk)
        const without = [...left.slice(0, start), ...left.slice(end)]
        if (without.length < left.length && fails(without)) left = without
      }
    }
    return left
  }

  private plainerConfig(workload: Workload): Workload {
    const keys = Object.keys(workload.config) as (keyof Workload['config'])[]
    const plain = config() as unknown as Record<string, unknown>
    let smallest = workload
    for (const key of keys) {
      const { [key]: _, ...others } = smallest.config
      const without = { ...smallest, config: others }
      if (smallest.config[key] === plain[key] || this.fails(without)) smallest = without
    }
    const unlimited = { ...smallest, memoryTokens: null }
    return smallest.memoryTokens !== null && this.fails(unlimited) ? unlimited : smallest
  }

  private smallerOperations(workload: Workload): Workload {
    let smallest = workload
    for (let at = 0; at < workload.operations.length; at++) {
      const fails = (one: Operation) => this.fails(replaced(smallest, at, one))
      smallest = replaced(smallest, at, this.smaller(smallest.operations[at], fails))
    }
    return smallest
  }

  private smaller<T extends object>(value: T, fails: (one: T) => boolean): T {
    let smallest = value
    for (const key of Object.keys(value) as (keyof T & string)[]) {
      const field = smallest[key]
      const set = (to: unknown): T => ({ ...smallest, [key]: to })
      const { [key]: _, ...without } = smallest
      const isOptional = OPTIONAL.has(key)
      if (isOptional && fails(without as T)) smallest = without as T
      else if (Array.isArray(field)) smallest = set(this.smallerList(field, (to) => fails(set(to))))
      else if (typeof field === 'number') {
        smallest = set(smallerNumber(field, MINIMA[key] ?? 0, (to) => fails(set(to))))
      } else if (typeof field === 'object' && field !== null) {
        smallest = set(this.smaller(field, (to) => fails(set(to))))
      }
    }
    return smallest
  }

  private smallerList(list: readonly unknown[], fails: (some: readonly unknown[]) => boolean) {
    let left = [...this.fewer(list, (some) => some.length > 0 && fails(some))]
    left.forEach((entry, at) => {
      if (typeof entry !== 'object' || entry === null) return
      const small = this.smaller(entry, (one) => fails(left.with(at, one)))
      left = left.with(at, small)
    })
    return left
  }
}

/** Fields that an operation may lack. */
const OPTIONAL = new Set([
  'loads',
  'deadlineMs',
  'maxWaitMs',
  'poison',
  'volatile',
  'full',
  'later',
  'mask',
  'outcomes',
  'stray',
])

/** Where 0 is no value. */
const MINIMA: Readonly<Record<string, number>> = {
  length: 1,
  model: 1,
  weight: 1,
  batchSize: 1,
  tokens: 8,
  inputLength: 8,
  roundTo: 1,
  maxInFlight: 1,
  deadlineMs: 1,
}

function smallerNumber(from: number, least: number, fails: (to: number) => boolean): number {
  let smallest = from
  for (const to of [least, least + 1, Math.floor(from / 2), from - 1]) {
    if (to >= least && to < smallest && fails(to)) smallest = to
  }
  return smallest
}

function replaced(workload: Workload, at: number, operation: Operation): Workload {
  return { ...workload, operations: workload.operations.with(at, operation) }
}

/** What is made less: the text of it. */
function measure(workload: Workload): number {
  return JSON.stringify(workload).length
}

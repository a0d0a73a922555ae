// What the command reads of GET /v1/state. A broker of another version may lack a count: it is then
// 0 or absent, and never a reason to stop a run.

type Json = Record<string, unknown>

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function at(value: unknown, path: string): unknown {
  let found = value
  for (const key of path.split('.')) found = isObject(found) ? found[key] : undefined
  return found
}

const numberAt = (value: unknown, path: string): number | null => {
  const found = at(value, path)
  return typeof found === 'number' ? found : null
}

export interface ConsumerView {
  readonly name: string
  readonly state: string
  readonly model: number
  readonly batchSize: number
  readonly tokens: number
  readonly inputLength: number
  readonly transport: string
  readonly channelBatches: number
  readonly inFlight: number
  readonly batches: number
  readonly items: number
}

export interface FillView {
  readonly batches: number
  readonly mean: number | null
  readonly p1: number | null
  readonly p50: number | null
}

function consumerView(consumer: Json): ConsumerView {
  const number = (path: string) => numberAt(consumer, path) ?? 0
  return {
    name: String(consumer.name ?? ''),
    state: consumer.overdue === true ? 'overdue' : String(consumer.state ?? ''),
    model: number('model'),
    batchSize: number('contract.batchSize'),
    tokens: number('contract.tokens'),
    inputLength: number('contract.inputLength'),
    transport: String(consumer.transport ?? ''),
    channelBatches: number('channelBatches'),
    inFlight: number('inFlight'),
    batches: number('batches'),
    items: number('items'),
  }
}

/** Where a broker on disk tells of it, and one in memory that may spill. */
const DISKS = [
  ['storage.health', 'nothing new is accepted'],
  ['storage.spill.health', 'no more than memory holds is accepted'],
] as const

export class StateView {
  constructor(readonly state: Json) {}

  number(path: string): number {
    return numberAt(this.state, path) ?? 0
  }

  text(path: string): string | null {
    const found = at(this.state, path)
    return typeof found === 'string' ? found : null
  }

  get gateOpen(): boolean {
    return at(this.state, 'gate.open') === true
  }

  get draining(): boolean {
    return this.state.draining === true
  }

  get fill(): FillView {
    const number = (key: string) => numberAt(this.state, `batches.fill.all.${key}`)
    const [mean, p1, p50] = [number('mean'), number('p1'), number('p50')]
    return { batches: number('batches') ?? 0, mean, p1, p50 }
  }

  get consumers(): readonly ConsumerView[] {
    return this.#objects('consumers').map(consumerView)
  }

  /** Models that have waiting items and no consumer. */
  get unserved(): readonly { readonly model: number; readonly items: number }[] {
    return this.#objects('unserved').map((each) => ({
      model: numberAt(each, 'model') ?? 0,
      items: numberAt(each, 'items') ?? 0,
    }))
  }

  /** What the broker refuses for its disk's sake, or null. */
  get diskTrouble(): string | null {
    for (const [path, refusal] of DISKS) {
      if (this.text(`${path}.state`) !== 'degraded') continue
      return `${refusal}: ${this.text(`${path}.message`) ?? 'the disk refuses writes'}`
    }
    return null
  }

  /** Jobs whose items wait for something other than a consumer, in the broker's words. */
  get stalled(): readonly {
    readonly id: string
    readonly waiting: number
    readonly reason: string
  }[] {
    return this.#objects('stalledJobs').map((each) => ({
      id: String(each.id ?? ''),
      waiting: numberAt(each, 'waiting') ?? 0,
      reason: String(each.reason ?? ''),
    }))
  }

  consumersOf(model: number): number {
    return this.consumers.filter((consumer) => consumer.model === model).length
  }

  /** How batches reach the consumers of a model: 'ring', 'socket', both or none. */
  transportsOf(model: number): readonly string[] {
    const serving = this.consumers.filter((consumer) => consumer.model === model)
    return [...new Set(serving.map(({ transport }) => transport))].filter(Boolean).sort()
  }

  #objects(path: string): Json[] {
    const found = at(this.state, path)
    return (Array.isArray(found) ? found : []).filter(isObject)
  }
}

// What a run sees of its broker while it goes on: the counts, how long it has not answered, and whether
// it still has the run's job after a restart.
import { FabricError } from '@fabric/protocol'
import type { FabricClient } from '../client.js'
import type { Job } from '../job.js'
import { StateView } from './state-view.js'

const LOOK_EVERY_MS = 1000
const LOOK_TIMEOUT_MS = 3000

export interface Watched {
  readonly client: FabricClient
  readonly job: Job
  readonly createdAt: string
  readonly before: StateView
  /** Told once, when the broker does not know the job any more. */
  readonly onLost: (error: FabricError) => void
}

export class BrokerWatch {
  /** As last seen; null while it does not answer. */
  state: StateView | null
  /** When it did not answer for the first time; null while it does. */
  silentSinceMs: number | null = null
  isLost = false
  /** The broker's start after which the job was last seen. */
  #life: string | null
  #looking: Promise<void> | null = null
  #timer: NodeJS.Timeout | undefined

  constructor(readonly watched: Watched) {
    this.state = watched.before
    this.#life = watched.before.text('startedAt')
  }

  /** A broker of another start than at the beginning of the run answers. */
  get isRestarted(): boolean {
    const [before, now] = [this.watched.before, this.state].map(
      (at) => at?.text('startedAt') ?? null,
    )
    return before !== null && now !== null && now !== before
  }

  start(): void {
    this.#timer = setInterval(() => {
      this.#looking ??= this.#look().finally(() => {
        this.#looking = null
      })
    }, LOOK_EVERY_MS)
  }

  /** After a last look. */
  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.#looking
    await this.#look()
  }

  async #look(): Promise<void> {
    const signal = AbortSignal.timeout(LOOK_TIMEOUT_MS)
    try {
      this.state = new StateView(await this.watched.client.state({ signal }))
      this.silentSinceMs = null
      await this.#checkLife(this.state.text('startedAt'), signal)
    } catch {
      this.state = null
      this.silentSinceMs ??= performance.now()
    }
  }

  /** A broker in disk mode has its jobs again after a restart, one in memory mode has none. */
  async #checkLife(startedAt: string | null, signal: AbortSignal): Promise<void> {
    if (startedAt === this.#life || this.isLost) return
    const { job, createdAt, onLost } = this.watched
    const found = await job.info({ signal }).catch((error) => {
      if (error instanceof FabricError && error.code === 'FABRIC_NOT_FOUND') return null
      throw error
    })
    if (found?.createdAt === createdAt) {
      this.#life = startedAt
      return
    }
    this.isLost = true
    onLost(new FabricError('FABRIC_NOT_FOUND', `job ${job.id} is gone`, { field: 'job' }))
  }
}

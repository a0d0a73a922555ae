// The health of the disk: it fails, or only its reserve is left, or all is well. Told when it changes.
import { FabricError } from '@fabric/protocol'
import { isBelowReserve } from './disk-errors.js'
import type { Environment } from './environment.js'
import type { Failure } from './messages.js'
import type { StoreHealth } from './store.js'

/** Appended in one turn of the writing thread since the room was looked at. */
const UNLOOKED_BYTES_MAX = 2 * 2 ** 20

export class DiskWatch {
  /** Why the disk refuses writes. */
  #failure: Failure | null = null
  /** The disk takes writes, but what is left of it is the reserve. */
  #shortage: Failure | null = null
  #health: StoreHealth = { state: 'ok' }
  #unlookedBytes = UNLOOKED_BYTES_MAX

  constructor(
    readonly environment: Environment,
    readonly reserveBytes: number,
    readonly tell: (health: StoreHealth) => void,
  ) {
    this.#lookForRoom()
  }

  get isFailing(): boolean {
    return this.#failure !== null
  }

  get isShort(): boolean {
    return this.#shortage !== null
  }

  get failure(): Failure | null {
    return this.#failure
  }

  fails(failure: Failure): void {
    this.#failure = failure
    this.#tellHealth()
  }

  isWell(): void {
    this.#failure = null
    this.#tellHealth()
  }

  /** A turn begins: its first append looks how much room there is. */
  nextTurn(): void {
    this.#unlookedBytes = UNLOOKED_BYTES_MAX
    if (this.#shortage !== null) this.#lookForRoom()
  }

  probe(): void {
    if (this.#failure === null) this.#lookForRoom()
  }

  /** @throws FabricError FABRIC_DISK_FULL, FABRIC_DISK_FAILED: the disk takes no append of so many bytes. */
  takeAppend(bytes: number): void {
    this.#unlookedBytes += bytes
    if (this.#failure === null && this.#unlookedBytes > UNLOOKED_BYTES_MAX) this.#lookForRoom()
    const refusal = this.#failure ?? this.#shortage
    if (refusal !== null) throw new FabricError(refusal.code, refusal.message)
  }

  #lookForRoom(): void {
    this.#unlookedBytes = 0
    this.#shortage = isBelowReserve(this.environment, this.reserveBytes)
      ? {
          code: 'FABRIC_DISK_FULL',
          message: `less than diskReserveBytes are left for ${this.environment.path}`,
        }
      : null
    this.#tellHealth()
  }

  #tellHealth(): void {
    const failure = this.#failure ?? this.#shortage
    const health: StoreHealth =
      failure === null ? { state: 'ok' } : ({ state: 'degraded', ...failure } as StoreHealth)
    if (JSON.stringify(health) === JSON.stringify(this.#health)) return
    this.#health = health
    this.tell(health)
  }
}

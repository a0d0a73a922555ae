// The health of the disk: it fails, or only its reserve is left, or all is well. Told when it changes.
import { FabricError } from '@fabric/protocol'
import { freeBytes } from './disk-errors.js'
import type { Environment } from './environment.js'
import type { Failure } from './messages.js'
import type { StoreHealth } from './store.js'

/** To ask for the room takes as long as to take in a hundred items, when the disk is busy. */
const LOOK_INTERVAL_MS = 100
/** Appended since the room was looked at, as a share of what there was above the reserve. */
const UNLOOKED_SHARE_MAX = 0.25

export class DiskWatch {
  /** Why the disk refuses writes. */
  #failure: Failure | null = null
  /** The disk takes writes, but what is left of it is the reserve. */
  #shortage: Failure | null = null
  #health: StoreHealth = { state: 'ok' }
  /** Above the reserve, when it was looked at. */
  #roomBytes = 0
  #unlookedBytes = 0
  #lookedAt = 0

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

  /** A turn begins. */
  nextTurn(): void {
    if (this.#shortage !== null) this.#lookForRoom()
  }

  probe(): void {
    if (this.#failure === null) this.#lookForRoom()
  }

  /** @throws FabricError FABRIC_DISK_FULL, FABRIC_DISK_FAILED: the disk takes no append of so many bytes. */
  takeAppend(bytes: number): void {
    const refusal = this.#refusalOf(bytes)
    if (refusal !== null) throw new FabricError(refusal.code, refusal.message)
  }

  /** The same for what can be left undone. */
  mayTake(bytes: number): boolean {
    return this.#refusalOf(bytes) === null
  }

  #refusalOf(bytes: number): Failure | null {
    this.#unlookedBytes += bytes
    if (this.#failure === null && this.#isLookDue()) this.#lookForRoom()
    return this.#failure ?? this.#shortage
  }

  /** Others write to the disk too. */
  #isLookDue(): boolean {
    const isLate = performance.now() - this.#lookedAt > LOOK_INTERVAL_MS
    return isLate || this.#unlookedBytes > UNLOOKED_SHARE_MAX * this.#roomBytes
  }

  #lookForRoom(): void {
    this.#unlookedBytes = 0
    this.#lookedAt = performance.now()
    this.#roomBytes = freeBytes(this.environment.path) - this.reserveBytes
    this.#shortage =
      this.#roomBytes < 0
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

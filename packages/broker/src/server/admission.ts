// Who may connect, and how many: consumers that are registered, and guests, which have not introduced
// themselves yet. The two are bounded apart, so that connections which never say hello keep nobody out.

import { FabricError } from '@fabric/protocol'

export interface AdmissionOptions {
  readonly allowUids: readonly number[]
  readonly allowGids: readonly number[]
  readonly maxConsumers: number
  readonly maxConsumersPerUid: number
}

/** What is asked of a connection. */
export interface Guest {
  readonly uid: number
  /** Ends it; `leave` comes of it. */
  fail(error: FabricError): void
}

/**
 * Guests of one user. A consumer is a guest for as long as its hello is under way, which is a turn of
 * the loop or two; at ten thousand connections a second this many last 12 ms.
 */
export const GUESTS_PER_UID_MAX = 128
/** Guests of all users: each costs a descriptor and a few KiB, and users that a group lets in are many. */
export const GUESTS_MAX = 512

/** Turns of the event loop after which a hello that had come with the connection has been read. */
const TURNS_TO_SPEAK = 2

export class Admission {
  readonly #consumers = new Map<Guest, number>()
  /** By user, and of each the oldest first, with the turn in which it came. */
  readonly #guests = new Map<number, Map<Guest, number>>()
  #guestCount = 0
  #turn = 0
  #turning = false
  #hasTold = false

  constructor(
    readonly options: AdmissionOptions,
    /** The first guest is sent away; called again only once their number has fallen. */
    readonly onCrowd: (uid: number) => void,
  ) {}

  get guests(): number {
    return this.#guestCount
  }

  /** @throws FabricError FABRIC_FORBIDDEN */
  check({ uid, gid }: { readonly uid: number; readonly gid: number }): void {
    const { allowUids, allowGids } = this.options
    const allowed =
      uid === 0 || uid === process.getuid?.() || allowUids.includes(uid) || allowGids.includes(gid)
    if (!allowed)
      throw new FabricError('FABRIC_FORBIDDEN', `user ${uid} (group ${gid}) is not allowed`)
  }

  /** Always has room for a newcomer: it is those who had time to speak and did not that go. */
  enter(guest: Guest): void {
    const guests = this.#guests.get(guest.uid) ?? new Map<Guest, number>()
    this.#guests.set(guest.uid, guests.set(guest, this.#turn))
    this.#guestCount++
    if (this.#isCrowded(guests)) this.#turnOn()
  }

  /** The guest becomes a consumer. @throws FabricError FABRIC_CONSUMER_LIMIT */
  register(guest: Guest): void {
    const { maxConsumers, maxConsumersPerUid } = this.options
    const { uid } = guest
    if (this.#consumers.size >= maxConsumers)
      throw new FabricError('FABRIC_CONSUMER_LIMIT', `maxConsumers (${maxConsumers}) are connected`)
    let own = 0
    for (const other of this.#consumers.values()) if (other === uid) own++
    if (own >= maxConsumersPerUid)
      throw new FabricError(
        'FABRIC_CONSUMER_LIMIT',
        `maxConsumersPerUid (${maxConsumersPerUid}) of user ${uid} are connected`,
      )
    this.#removeGuest(guest)
    this.#consumers.set(guest, uid)
  }

  leave(guest: Guest): void {
    this.#consumers.delete(guest)
    this.#removeGuest(guest)
  }

  #removeGuest(guest: Guest): void {
    const guests = this.#guests.get(guest.uid)
    if (guests === undefined || !guests.delete(guest)) return
    this.#guestCount--
    if (guests.size === 0) this.#guests.delete(guest.uid)
    if (this.#guestCount < GUESTS_PER_UID_MAX / 2) this.#hasTold = false
  }

  #isCrowded(guests: ReadonlyMap<Guest, number>): boolean {
    return guests.size > GUESTS_PER_UID_MAX || this.#guestCount > GUESTS_MAX
  }

  /** Turns count only while there are too many guests: nothing runs for an idle broker. */
  #turnOn(): void {
    if (this.#turning) return
    this.#turning = true
    setImmediate(() => {
      this.#turning = false
      this.#turn++
      this.#thinOut()
    })
  }

  #thinOut(): void {
    let left = true
    while (left) {
      const guests = this.#largestCrowd()
      if (guests === null) return
      left = this.#dismissOldest(guests)
    }
    this.#turnOn()
  }

  /** Of users with too many guests, or of all while all are too many, the one with the most. */
  #largestCrowd(): Map<Guest, number> | null {
    let largest: Map<Guest, number> | null = null
    for (const guests of this.#guests.values())
      if (this.#isCrowded(guests) && guests.size > (largest?.size ?? 0)) largest = guests
    return largest
  }

  /** False while the oldest may have spoken and was not heard yet. */
  #dismissOldest(guests: Map<Guest, number>): boolean {
    for (const [guest, turn] of guests) {
      if (this.#turn - turn < TURNS_TO_SPEAK) return false
      this.#tellOnce(guest.uid)
      guest.fail(
        new FabricError('FABRIC_CONSUMER_LIMIT', 'too many connections have not said hello'),
      )
      return true
    }
    return false
  }

  #tellOnce(uid: number): void {
    if (this.#hasTold) return
    this.#hasTold = true
    this.onCrowd(uid)
  }
}

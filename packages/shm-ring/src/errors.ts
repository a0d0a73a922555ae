/** Every expected failure of this package, with the code that stays the same between versions. */
export const RING_ERROR_CODES = {
  RING_CAPACITY_INVALID: 'the capacity is not a power of two from 4 MiB to 16 GiB',
  RING_OPTION_INVALID: 'an option has a value that it can not have',
  RING_HUGE_PAGES_UNAVAILABLE: "hugePages is 'require' and there are not enough 2 MiB pages",
  RING_MEMORY_UNAVAILABLE: 'the host has no memory for a ring of this capacity',
  RING_SEAL_INEFFECTIVE: 'the kernel does not protect the ring from writes by a consumer',
  RING_RECORD_TOO_LARGE: 'the payload is larger than maxPayloadBytes',
  RING_RECORD_INVALID: 'the ring holds a record that no correct broker writes',
  RING_CLAIM_SETTLED: 'the claim is committed or aborted already',
  RING_POISONED: 'the consumer published an impossible position; the ring is lost',
  RING_CLOSED: 'the ring is closed',
  RING_NOT_OWNER: 'only the writer that made the ring can do this',
  RING_ABI_MISMATCH: 'the two sides do not speak the same version of the ring',
  RING_DESCRIPTOR_INVALID: 'the descriptors are not those of a ring',
  RING_SEND_FAILED: 'the descriptors could not be sent',
  RING_CONNECT_FAILED: 'no connection to the socket',
  RING_HANDSHAKE_TIMEOUT: 'the broker did not answer in time',
  RING_HANDSHAKE_FAILED: 'the broker closed the connection or sent no frame',
  RING_SYSTEM_CALL_FAILED: 'the operating system refused a call',
  RING_PLATFORM_UNSUPPORTED: 'the ring needs Linux and a build of this package for it',
} as const

export type RingErrorCode = keyof typeof RING_ERROR_CODES

/** Also made by the addon, which is given this class. */
export class RingError extends Error {
  override readonly name = 'RingError'
  readonly code: RingErrorCode
  /** The option at fault, if one is. */
  readonly field?: string

  constructor(code: RingErrorCode, message: string, field?: string) {
    super(message)
    this.code = code
    if (field !== undefined) this.field = field
  }
}

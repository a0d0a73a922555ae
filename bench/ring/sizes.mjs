// The records that are compared, and the bytes that one burst of them moves.

const KIB = 1024
export const RECORD_BYTES = [4 * KIB, 64 * KIB, 256 * KIB, 1024 * KIB]
/** The targets speak of these. */
export const PROMISED_BYTES = [64 * KIB, 256 * KIB, 1024 * KIB]

export const sizeName = (bytes) => (bytes < KIB * KIB ? `${bytes / KIB} KiB` : '1 MiB')

/** What the broker gives a consumer with batches of at most 2 MiB, so with all that are compared. */
export const RING_BYTES = 16 * KIB * KIB

/** Long enough that how a burst starts decides nothing; small records are slower to send. */
export const burstBytes = (recordBytes, quick) =>
  (quick ? 128 : 512) * KIB * KIB * (recordBytes < 64 * KIB ? 0.25 : 1)

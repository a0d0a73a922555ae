// The records that are compared, and the bytes that one burst of them moves.

const KIB = 1024
export const RECORD_BYTES = [4 * KIB, 64 * KIB, 256 * KIB, 1024 * KIB]
/** The targets speak of these. */
export const PROMISED_BYTES = [64 * KIB, 256 * KIB, 1024 * KIB]

export const sizeName = (bytes) => (bytes < KIB * KIB ? `${bytes / KIB} KiB` : '1 MiB')

/** Two laps of a 64 MiB ring in a full run; small records are slower to send. */
export const burstBytes = (recordBytes, quick) =>
  (quick ? 64 : 128) * KIB * KIB * (recordBytes < 64 * KIB ? 0.5 : 1)

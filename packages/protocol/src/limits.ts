// Named maxima of the formats. A peer that passes one is answered with an error, never obeyed.

export const PROTOCOL_VERSION = 1
export const INT32_MAX = 2 ** 31 - 1
/** Longest item id, UTF-8 bytes: an id is a key, not a document. */
export const ID_BYTES_MAX = 512
export const BATCH_SIZE_MAX = 2 ** 20
export const MAX_IN_FLIGHT_MAX = 64
export const ROUND_TO_MAX = 64
/** Frames that hold JSON, and any frame of a peer that has not introduced itself. */
export const CONTROL_FRAME_BYTES_MAX = 64 * 1024
/** Batches and results: bounds what one peer can make the other hold. */
export const DATA_FRAME_BYTES_MAX = 256 * 1024 * 1024

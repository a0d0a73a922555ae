// What the demo runs, in one place.

/** The contract both consumers register. 2,048 is a multiple of most padded lengths up to 256. */
export const CONTRACT = { batchSize: 256, tokens: 2048, inputLength: 256, model: 1 }

/** Lengths are padded to multiples of it: the broker's default. */
export const ROUND_TO = 8

/** 48 batches: more than there are lanes, so that every lane can fill while the producer waits. */
export const MAX_QUEUED_TOKENS = 48 * CONTRACT.tokens

export const CORPUS = { short: 18_300, long: 1_700 }
export const SEED = 20_250_117
export const SAMPLES = 64

export const CONSUMERS = ['gpu0', 'gpu1']

// The one table of error codes that users may rely on, and the error class that carries them.
// HTTP status and wording stand here so that every face of the product says the same thing.

interface ErrorKind {
  /** HTTP status of the code; also tells who is at fault: 4xx the caller, 5xx the broker's state. */
  readonly status: number
  /** What it means and what to do; the reference page is made from it. */
  readonly meaning: string
}

const kinds = {
  FABRIC_BAD_REQUEST: {
    status: 400,
    meaning: 'The request is not valid JSON, or its type is not accepted.',
  },
  FABRIC_NOT_FOUND: { status: 404, meaning: 'No such job, item or route.' },
  FABRIC_METHOD: {
    status: 405,
    meaning: 'The path does not take this method; `Allow` names those it takes.',
  },
  FABRIC_ITEM_MALFORMED: {
    status: 422,
    meaning:
      'A field of an item is missing, of the wrong type or out of range; `field` names it, `line` the line.',
  },
  FABRIC_TEXT_NEEDS_TOKENIZER: {
    status: 422,
    meaning:
      'The item holds `text` and the broker has no tokenizer for its model: send `tokens`, or use `fabric run`, which tokenises.',
  },
  FABRIC_MODEL_UNKNOWN: {
    status: 422,
    meaning: 'The model is not an integer from 0 to 2147483647.',
  },
  FABRIC_ID_CONFLICT: { status: 409, meaning: 'The id was used in this job with another body.' },
  FABRIC_TOO_LARGE: {
    status: 413,
    meaning:
      'The body, the number of its items, or one item is over its limit; the message names it (maxBodyBytes, maxItemsPerRequest, maxItemBytes, maxBatchBytes).',
  },
  FABRIC_QUEUE_FULL: {
    status: 429,
    meaning:
      'The queue is at its limit (maxQueuedItems, maxQueuedTokens): come back after Retry-After.',
  },
  FABRIC_RESULTS_UNREAD: {
    status: 429,
    meaning: 'The unread results of the job are at maxUnreadResultBytes: read them first.',
  },
  FABRIC_RESULTS_GONE: {
    status: 410,
    meaning:
      'The results at this offset were read and have made room for others (maxKeptResultBytes).',
  },
  FABRIC_JOB_LIMIT: { status: 429, meaning: 'maxJobs are known: delete one that has ended.' },
  FABRIC_DISK_FULL: {
    status: 507,
    meaning:
      'The disk of dataDir is full: nothing new is accepted until there is room. What was accepted is kept and goes on.',
  },
  FABRIC_DISK_FAILED: {
    status: 503,
    meaning:
      'The disk of dataDir refuses writes; the message holds its words. The broker tries again by itself: come back after Retry-After.',
  },
  FABRIC_STORE_VERSION: {
    status: 500,
    meaning:
      'The data in dataDir was written by a newer broker: run that version, or give another dataDir.',
  },
  FABRIC_STORE_IN_USE: { status: 409, meaning: 'Another broker has this dataDir open.' },
  FABRIC_STORE_DAMAGED: {
    status: 500,
    meaning:
      'The data file in dataDir cannot be opened: look with `fabric-broker verify`, restore a copy, or start with another dataDir.',
  },
  FABRIC_DRAINING: { status: 503, meaning: 'The broker is shutting down and takes nothing new.' },
  FABRIC_CONFIG_INVALID: {
    status: 400,
    meaning: 'A setting is unknown or impossible; `field` is its path.',
  },
  FABRIC_CONTRACT_INVALID: {
    status: 422,
    meaning:
      'One of the integers a consumer registers is missing or out of range; `field` names it.',
  },
  FABRIC_CONTRACT_CLASSES: {
    status: 429,
    meaning: 'A model has consumers of 64 different contracts already.',
  },
  FABRIC_CONSUMER_LIMIT: {
    status: 429,
    meaning:
      'maxConsumers, or maxConsumersPerUid of its user, are connected; or too many connections have not said hello.',
  },
  FABRIC_CONSUMER_DRAINED: {
    status: 409,
    meaning:
      'An operator drained this consumer: it has finished what it held, and ends with exit code 0.',
  },
  FABRIC_PROTOCOL: {
    status: 400,
    meaning: 'The peer sent something that is not our protocol, or another version of it.',
  },
  FABRIC_FORBIDDEN: {
    status: 403,
    meaning: 'The user or group of the connecting process is not allowed.',
  },
  FABRIC_RING_UNAVAILABLE: {
    status: 503,
    meaning: 'A ring was demanded and cannot be had; the message says why.',
  },
  FABRIC_LEASE_UNKNOWN: {
    status: 409,
    meaning: 'A result names a batch of another life of the broker, or one that never was.',
  },
  FABRIC_LEASE_EXPIRED: {
    status: 408,
    meaning:
      'The consumer renewed nothing within leaseTimeoutMs, or took no batch for leaseMaxMs though it could: its work was given to others, and it registers anew.',
  },
  FABRIC_INTERNAL: { status: 500, meaning: 'A defect of the broker; its log holds the cause.' },
  FABRIC_BATCH_MALFORMED: { status: 500, meaning: 'Bytes that should be a batch are not one.' },
  FABRIC_RESULT_MALFORMED: {
    status: 422,
    meaning: 'The handler returned something that is not one result per item.',
  },
  FABRIC_SOCKET_IN_USE: { status: 409, meaning: 'Another broker listens on this socket path.' },
  FABRIC_SOCKET_PATH: {
    status: 400,
    meaning: 'The socket path cannot be used: too long, not a socket, or not writable.',
  },
  FABRIC_PORT_IN_USE: { status: 409, meaning: 'Another process listens on this address.' },
  FABRIC_INSECURE: {
    status: 400,
    meaning:
      'The listener is reachable from other hosts and has no credentials; say --insecure to allow that.',
  },
  FABRIC_BROKER_UNREACHABLE: { status: 503, meaning: 'No broker answers at this address.' },
  FABRIC_CONNECTION_LOST: {
    status: 503,
    meaning: 'The connection to the broker ended before the answer came.',
  },
  FABRIC_MODEL_DIR: {
    status: 400,
    meaning: 'The model folder cannot be read, or lacks a file that is needed.',
  },
  FABRIC_RUNTIME_MISSING: {
    status: 400,
    meaning: 'The runtime, or the package it needs, is not installed.',
  },
  FABRIC_RUNTIME_FAILED: {
    status: 500,
    meaning: 'The runtime could not load the model or run the batch.',
  },
  FABRIC_OUT_OF_MEMORY: {
    status: 500,
    meaning:
      'The batch did not fit the device’s memory: nacked with this reason it counts no failure and comes back in halves.',
  },
  FABRIC_DEVICE_UNAVAILABLE: {
    status: 400,
    meaning:
      'The device demanded with --device cannot be used; the message holds the provider’s own words.',
  },
  FABRIC_INPUT_TOO_LONG: {
    status: 422,
    meaning:
      'The item is longer than the runtime’s input length, and the over-length policy is `fail`.',
  },
  FABRIC_ITEM_FAILED: { status: 500, meaning: 'The handler failed this item.' },
  FABRIC_MAX_ATTEMPTS: { status: 500, meaning: 'The item failed maxAttempts times.' },
  FABRIC_DEADLINE_PASSED: {
    status: 504,
    meaning: 'The item was not done within its deadlineMs; its result says expired.',
  },
  FABRIC_QUARANTINED: {
    status: 500,
    meaning:
      'Consumers died of the item again and again: it is kept in quarantine, where `fabric quarantine` lists, replays and deletes it.',
  },
  FABRIC_JOB_CANCELLED: { status: 409, meaning: 'The job was cancelled and takes no items.' },
  FABRIC_MAX_DELIVERIES: {
    status: 500,
    meaning: 'The item was delivered maxDeliveries times and never settled.',
  },
  FABRIC_TOKENIZER: {
    status: 400,
    meaning: 'The tokenizer file cannot be read, or is of a kind that is not supported.',
  },
  FABRIC_INPUT: {
    status: 400,
    meaning: 'An input file cannot be read, or a line of it is not an item.',
  },
  FABRIC_OUTPUT: {
    status: 400,
    meaning: 'An output file cannot be written, or is at the same time a file that is read.',
  },
  FABRIC_OUTPUT_IN_USE: {
    status: 409,
    meaning: 'Another fabric command on this host writes to the same output.',
  },
  FABRIC_OTHER_RUN: {
    status: 409,
    meaning:
      'The output holds the beginning of a run of another input or of other arguments; the message names them. Give the same, or `--restart`.',
  },
  FABRIC_SCENARIO: {
    status: 400,
    meaning:
      'A scenario of `fabric simulate`, or a trace that it names, cannot be read or holds something unknown or impossible; `field` is its path.',
  },
  FABRIC_USAGE: {
    status: 400,
    meaning: 'A command was called with an argument it does not know or cannot use.',
  },
} as const satisfies Record<string, ErrorKind>

export type ErrorCode = keyof typeof kinds
export const ERROR_KINDS: Readonly<Record<ErrorCode, ErrorKind>> = kinds

export interface ErrorBody {
  readonly code: ErrorCode
  readonly message: string
  readonly field?: string
}

/** An expected failure: a stable code, a sentence, and the field that caused it. */
export class FabricError extends Error {
  override readonly name = 'FabricError'
  readonly code: ErrorCode
  readonly field: string | undefined

  constructor(
    code: ErrorCode,
    message: string,
    options: { field?: string | undefined; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.field = options.field
  }

  get status(): number {
    return kinds[this.code].status
  }

  toBody(): ErrorBody {
    return {
      code: this.code,
      message: this.message,
      ...(this.field === undefined ? {} : { field: this.field }),
    }
  }

  static fromBody(body: ErrorBody): FabricError {
    const code = body.code in kinds ? body.code : 'FABRIC_PROTOCOL'
    return new FabricError(code, body.message, { field: body.field })
  }
}

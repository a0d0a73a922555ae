// Ends a process that has threads in LMDB. When it exits, by process.exit or by an error that nobody
// caught, Node stops its threads wherever they are; one that is stopped within a transaction waits for
// ever for the lock that it holds itself, and the process with it. So the process waits for the transaction
// under way, and no other one begins.

/** A transaction that takes longer than this has a disk that hangs: it is not waited for. */
const WAIT_MS = 10_000

const IN_TRANSACTION = 0
const IS_EXITING = 1

/** Of the thread that may exit. */
export class ExitGate {
  readonly flags = new Int32Array(new SharedArrayBuffer(8))
  readonly #onExit = () => {
    Atomics.store(this.flags, IS_EXITING, 1)
    Atomics.wait(this.flags, IN_TRANSACTION, 1, WAIT_MS)
  }

  constructor() {
    process.on('exit', this.#onExit)
  }

  /** There are no threads any more. */
  remove(): void {
    process.off('exit', this.#onExit)
  }
}

/**
 * Of the thread that writes. Sequentially consistent on both sides: either the exit sees the transaction, or
 * the transaction sees the exit.
 */
export function withinGate<T>(flags: Int32Array | null, transaction: () => T): T {
  if (flags === null) return transaction()
  Atomics.store(flags, IN_TRANSACTION, 1)
  try {
    if (Atomics.load(flags, IS_EXITING) === 1) {
      open(flags)
      // The process ends now.
      Atomics.wait(flags, IS_EXITING, 1)
    }
    return transaction()
  } finally {
    open(flags)
  }
}

function open(flags: Int32Array): void {
  Atomics.store(flags, IN_TRANSACTION, 0)
  Atomics.notify(flags, IN_TRANSACTION)
}

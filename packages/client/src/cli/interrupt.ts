// Ctrl-C and its like: the first asks the command to stop in order, the second ends the process.

export class Interrupted extends Error {
  constructor(readonly exitCode: number) {
    super('interrupted')
  }
}

const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 } as const

export class Signals {
  #listener: (interrupted: Interrupted) => void = (interrupted) =>
    process.exit(interrupted.exitCode)

  constructor() {
    for (const [signal, exitCode] of Object.entries(EXIT_CODES)) {
      process.once(signal, () => this.#listener(new Interrupted(exitCode)))
    }
  }

  /** Instead of ending the process at once. */
  onInterrupt(listener: (interrupted: Interrupted) => void): void {
    this.#listener = listener
  }
}

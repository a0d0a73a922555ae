// What the consumer asks of a logger: pino fits as it is.

type LogMethod = (fields: object, message: string) => void

export interface Logger {
  readonly debug: LogMethod
  readonly info: LogMethod
  readonly warn: LogMethod
  readonly error: LogMethod
}

const nothing: LogMethod = () => {}
export const silentLogger: Logger = { debug: nothing, info: nothing, warn: nothing, error: nothing }

/** The message of whatever was thrown. */
export const messageOf = (thrown: unknown): string =>
  thrown instanceof Error ? thrown.message : String(thrown)

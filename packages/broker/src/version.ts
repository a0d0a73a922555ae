// The version of the package, for --version, /info and the state.
import { createRequire } from 'node:module'

const { version } = createRequire(import.meta.url)('../package.json') as { version: string }

export const VERSION = version

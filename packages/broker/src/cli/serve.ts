// `fabric-broker serve`: starts the broker and ties it to the signals of the process.
import { startBroker } from '../broker.js'
import { ServiceManager } from './service-manager.js'

/** Ctrl-C and process managers often signal a process and its group: one wish, not two. */
const SAME_SIGNAL_MS = 500
/** Killed by a second signal: as a shell would say it. */
const EXIT_BY_SIGNAL = { SIGTERM: 143, SIGINT: 130 } as const

export async function serve(flags: Readonly<Record<string, unknown>>): Promise<void> {
  const { config: file = process.env.FABRIC_CONFIG, ...options } = flags
  const broker = await startBroker({
    flags: options,
    environment: process.env,
    ...(typeof file === 'string' ? { file } : {}),
  })
  const systemd = new ServiceManager(process.env, (message) => broker.warn(message))
  systemd.ready()
  await new Promise<void>((resolve, reject) => {
    let stoppingSince: number | null = null
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.on(signal, () => {
        if (stoppingSince !== null) {
          if (Date.now() - stoppingSince > SAME_SIGNAL_MS) process.exit(EXIT_BY_SIGNAL[signal])
          return
        }
        stoppingSince = Date.now()
        systemd.stopping()
        broker.stop().then(resolve, reject)
      })
    }
  })
}

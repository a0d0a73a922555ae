// What systemd is told of the service: that it is ready, that it stops, and that its loop still turns
// (the watchdog). Node has no Unix datagram sockets, so systemd's own `systemd-notify` sends it; the
// unit says NotifyAccess=all, since the words come from a child (docs/systemd.md).
import { spawn } from 'node:child_process'

type Environment = Readonly<Record<string, string | undefined>>

export class ServiceManager {
  #watchdog: NodeJS.Timeout | null = null
  #warned = false

  /** @param warn told once, when nothing can be sent. */
  constructor(
    readonly environment: Environment,
    readonly warn: (message: string) => void,
  ) {}

  get isPresent(): boolean {
    return (this.environment.NOTIFY_SOCKET ?? '') !== ''
  }

  /** The broker listens: systemd starts what comes after it, and expects signs of life. */
  ready(): void {
    this.#send('READY=1')
    const everyMs = this.#watchdogMs()
    if (everyMs === null) return
    // From the loop that serves: one that hangs sends none, and is started anew.
    this.#watchdog = setInterval(() => this.#send('WATCHDOG=1'), everyMs / 2)
    this.#watchdog.unref()
  }

  /** It drains, which may take drainTimeoutMs; the watchdog goes on until the end. */
  stopping(): void {
    this.#send('STOPPING=1')
  }

  /** Milliseconds within which systemd wants a sign; null when it wants none, or not from us. */
  #watchdogMs(): number | null {
    const { WATCHDOG_USEC: usec, WATCHDOG_PID: pid = String(process.pid) } = this.environment
    if (!this.isPresent || usec === undefined || pid !== String(process.pid)) return null
    const ms = Number(usec) / 1000
    return ms >= 1 ? ms : null
  }

  #send(state: string): void {
    if (!this.isPresent) return
    const env = { PATH: this.environment.PATH, NOTIFY_SOCKET: this.environment.NOTIFY_SOCKET }
    const child = spawn('systemd-notify', [state], { env, stdio: 'ignore' })
    child.on('error', (error) => this.#failed(error.message))
    child.on('exit', (code) => {
      if (code !== 0) this.#failed(`systemd-notify ended with ${code}`)
    })
    child.unref()
  }

  #failed(why: string): void {
    if (this.#warned) return
    this.#warned = true
    this.warn(`systemd could not be told of the broker's state (NOTIFY_SOCKET is set): ${why}`)
  }
}

// The connection to the broker, with its renewals and its way back after a loss. Lives in a thread of
// its own, so that no handler can delay a renewal (S24); speaks by `report` and never touches a batch.
import {
  decodeError,
  type ErrorBody,
  encodeError,
  encodeFrame,
  encodeTaken,
  FabricError,
  FRAME_HEADER_BYTES,
  type Frame,
  FrameType,
  type Welcome,
  writeFrameHeader,
} from '@fabric/protocol'
import { Backoff } from './backoff.js'
import { type Dialled, dial } from './dial.js'
import { lossOf } from './loss.js'
import type { Command, ConnectionOptions, Report } from './messages.js'

/** After the goodbye the broker closes; one that does not is left. */
const GOODBYE_TIMEOUT_MS = 2_000

/** Refusals that pass by themselves; every other one stays the same however often we ask. */
const PASSING: ReadonlySet<string> = new Set([
  'FABRIC_BROKER_UNREACHABLE',
  'FABRIC_CONNECTION_LOST',
  'FABRIC_CONSUMER_LIMIT',
  'FABRIC_DRAINING',
  'FABRIC_LEASE_EXPIRED',
  'FABRIC_LEASE_UNKNOWN',
  'FABRIC_BATCH_MALFORMED',
])

type Send = (report: Report, transfer?: ArrayBuffer[]) => void

type Results = Omit<Extract<Command, { type: 'results' }>, 'type'>

interface Live extends Dialled {
  readonly epoch: number
  readonly since: number
  readonly renewals: NodeJS.Timeout
  renewedAt: number
  /** Why it ends, when one side said so before it closed. */
  reason: ErrorBody | null
}

export class Connection {
  readonly #options: ConnectionOptions
  readonly #report: Send
  readonly #backoff = new Backoff()
  #live: Live | null = null
  #epoch = 0
  #isDialling = false
  #isDraining = false
  #isClosing = false
  #disconnectedSince = performance.now()
  #retry: NodeJS.Timeout | undefined
  /** Results that were ready while there was no connection; at most maxInFlight batches' worth. */
  readonly #unsent: Results[] = []

  constructor(options: ConnectionOptions, report: Send) {
    this.#options = options
    this.#report = report
  }

  async connect(): Promise<void> {
    const { socketPath, hello } = this.#options
    this.#isDialling = true
    try {
      this.#begin(await dial(socketPath, hello))
    } catch (error) {
      if (!this.#isClosing) this.#tryAgain(error as FabricError)
    }
    this.#isDialling = false
    if (this.#isClosing) this.#close()
  }

  handle(command: Command): void {
    switch (command.type) {
      case 'taken':
        if (this.#live?.epoch === command.epoch) this.#live.socket.write(encodeTaken(command.batch))
        break
      case 'results':
        this.#sendResults(command)
        break
      case 'drain':
        this.#isDraining = true
        this.#live?.socket.write(encodeFrame(FrameType.drain))
        break
      case 'reset':
        if (this.#live?.epoch === command.epoch) this.#drop(this.#live, command.error)
        break
      case 'close':
        this.#close()
    }
  }

  #begin(dialled: Dialled): void {
    const { socket, welcome, descriptors } = dialled
    this.#epoch += 1
    // Not from the timer itself: a process that was stopped first reads what came meanwhile, which may
    // be that its lease has ended; a write would only find the socket closed.
    const renewals = setInterval(() => setImmediate(() => this.#renew(live)), welcome.renewEveryMs)
    const since = performance.now()
    const epoch = this.#epoch
    const live: Live = { ...dialled, epoch, since, renewals, renewedAt: since, reason: null }
    this.#live = live
    const late = this.#unsent.splice(0)
    const taken = late.filter((results) => frameOf(results, welcome) !== null)
    const droppedResults = late.length - taken.length
    this.#report({ type: 'connected', epoch: live.epoch, welcome, descriptors, droppedResults })
    if (this.#isDraining) socket.write(encodeFrame(FrameType.drain))
    for (const results of taken) this.#sendResults(results)
    socket.on('error', (error) => {
      live.reason ??= this.#lossOf(live, error.message)
    })
    socket.on('close', () => this.#ended(live))
    socket.on('data', (chunk) => {
      live.frames.push(chunk)
      this.#readFrames(live)
    })
    this.#readFrames(live)
    socket.resume()
  }

  #renew(live: Live): void {
    if (this.#live !== live || live.reason !== null || !live.socket.writable) return
    live.renewedAt = performance.now()
    live.socket.write(encodeFrame(FrameType.renew))
  }

  #lossOf({ renewedAt, welcome }: Live, message: string): ErrorBody {
    return lossOf(message, performance.now() - renewedAt, welcome.leaseTimeoutMs)
  }

  #readFrames(live: Live): void {
    try {
      for (let frame = live.frames.next(); frame !== null; frame = live.frames.next())
        this.#read(live, frame)
    } catch (error) {
      this.#drop(live, (error as FabricError).toBody())
    }
  }

  #read(live: Live, frame: Frame): void {
    const { epoch } = live
    if (frame.type === FrameType.batch) {
      // A buffer of its own: the frame's bytes are borrowed, and a detach must end this batch alone.
      const { buffer } = frame.body.slice()
      this.#report({ type: 'batch', epoch, buffer }, [buffer])
    } else if (frame.type === FrameType.drain) {
      this.#report({ type: 'drain', epoch })
    } else if (frame.type === FrameType.error) {
      live.reason = decodeError(frame.body).toBody()
    } else {
      throw new FabricError('FABRIC_PROTOCOL', `the broker sent a frame of type ${frame.type}`)
    }
  }

  #sendResults(results: Results): void {
    const live = this.#live
    if (live === null || live.reason !== null || !live.socket.writable) {
      this.#unsent.push(results)
      return
    }
    const frame = frameOf(results, live.welcome)
    if (frame === null) return
    const { type, body } = frame
    const header = new Uint8Array(FRAME_HEADER_BYTES)
    writeFrameHeader(header, type, FRAME_HEADER_BYTES + body.byteLength)
    const { socket } = live
    socket.cork()
    socket.write(header)
    socket.write(body)
    socket.uncork()
  }

  #drop(live: Live, error: ErrorBody): void {
    live.reason ??= error
    live.socket.removeAllListeners('data').resume() // what still comes is not looked at
    live.socket.end(encodeError(error))
    live.socket.destroySoon()
  }

  #ended(live: Live): void {
    clearInterval(live.renewals)
    this.#live = null
    if (this.#isClosing) {
      this.#closed()
      return
    }
    this.#backoff.ended(performance.now() - live.since)
    this.#disconnectedSince = performance.now()
    const error = live.reason ?? this.#lossOf(live, 'the broker closed the connection')
    this.#report({ type: 'disconnected', epoch: live.epoch, error })
    this.#tryAgain(FabricError.fromBody(error))
  }

  #tryAgain(error: FabricError): void {
    const { reconnect, connectTimeoutMs } = this.#options
    const waited = performance.now() - this.#disconnectedSince
    const retryInMs = this.#backoff.nextMs()
    const hasTime = connectTimeoutMs === null || waited + retryInMs <= connectTimeoutMs
    if (!reconnect || !hasTime || !PASSING.has(error.code)) {
      this.#report({ type: 'failed', error: error.toBody() })
      return
    }
    this.#report({ type: 'unreachable', error: error.toBody(), retryInMs })
    this.#retry = setTimeout(() => void this.connect(), retryInMs)
  }

  /** A broker that is just answering has made room for us: it gets its goodbye when that is done. */
  #close(): void {
    this.#isClosing = true
    clearTimeout(this.#retry)
    if (this.#isDialling) return
    if (this.#live === null) {
      this.#closed()
      return
    }
    const { socket } = this.#live
    socket.end(encodeFrame(FrameType.bye))
    setTimeout(() => socket.destroy(), GOODBYE_TIMEOUT_MS).unref()
  }

  #closed(): void {
    this.#report({ type: 'closed', unsentResults: this.#unsent.length })
  }
}

/**
 * Results name the broker's life. Another life has other leases: it takes them with their items beside
 * them, if at all (S26).
 */
function frameOf(
  { brokerLife, body, earlier }: Results,
  welcome: Welcome,
): { readonly type: FrameType; readonly body: Uint8Array } | null {
  if (welcome.brokerLife === brokerLife) return { type: FrameType.results, body }
  if (earlier === null || welcome.earlierResults !== true) return null
  return { type: FrameType.earlierResults, body: earlier }
}

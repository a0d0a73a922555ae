// The broker as a whole: core, engine, listeners and stores put together, started and stopped. The
// command and programs that embed a broker both come through `startBroker`.
import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import type { BudgetRule, CoreConfig, DeathCause, SubmitBlock } from '@fabric/core'
import { budgetRuleOf, Core, defaultLayout } from '@fabric/core'
import { FabricError } from '@fabric/protocol'
import { hardenProcess, ringSupport } from '@fabric/shm-ring'
import type { Logger } from 'pino'
import { Connection, type ConnectionHost } from './channels/connection.js'
import { RingBudget } from './channels/ring-budget.js'
import { type Clock, monotonicClock } from './clock.js'
import { Commands } from './commands.js'
import { type ConfigSources, loadConfig, unknownVariables } from './config/load.js'
import type { BrokerConfig } from './config/options.js'
import { diskResultHome } from './durable/durability.js'
import { Engine } from './engine.js'
import type { SubmitAnswer } from './http/ingest.js'
import { type HttpFace, HttpServer, isLoopback, parseAddress } from './http/server.js'
import { JobLife } from './job-life.js'
import { DEFAULT_JOB, type Job, JobTable } from './jobs.js'
import { makeLogger } from './log.js'
import { openStoreOf } from './open-store.js'
import { Report } from './report.js'
import { ResultStore } from './results/store.js'
import { Admission } from './server/admission.js'
import { defaultSocketPath } from './server/socket-path.js'
import { UnixListener } from './server/unix-listener.js'
import type { BrokerState } from './state.js'
import { Stats } from './stats.js'
import { openStore } from './storage/open.js'
import type { Store } from './storage/store.js'
import { Story } from './story.js'
import { warmUp } from './warm-up.js'

export interface BrokerOptions extends ConfigSources {
  /** Default: as logLevel and logFormat say. */
  readonly log?: Logger
  /** How long a connection may take to introduce itself. */
  readonly helloDeadlineMs?: number
  /** Another store than the one in dataDir, or in spillDir. */
  readonly openStore?: typeof openStore
}

export interface RunningBroker {
  readonly socketPath: string
  readonly httpUrl: string
  readonly config: BrokerConfig
  /** A line of the broker's log. */
  warn(message: string): void
  state(): BrokerState
  /** Accepts nothing new, lets consumers finish what they work on, closes. Called again, it hurries. */
  stop(): Promise<void>
}

/** @throws FabricError when the configuration, the socket or the port cannot be used. */
export async function startBroker(options: BrokerOptions = {}): Promise<RunningBroker> {
  const config = loadConfig(options)
  const log = options.log ?? makeLogger({ level: config.logLevel, format: config.logFormat })
  for (const warning of unknownVariables(options.environment ?? {})) log.warn(warning)
  const address = parseAddress(config.http)
  if (!isLoopback(address.host) && !config.insecure)
    throw new FabricError(
      'FABRIC_INSECURE',
      `http: ${address.host} can be reached from other hosts and nothing there asks for credentials yet; --insecure allows it`,
      { field: 'http' },
    )
  checkUsersCanBeTold(config)
  const socketPath = config.socket ?? defaultSocketPath()
  if (!config.debuggable) hardenProcess()
  const store = await openStoreOf(config, options.openStore ?? openStore)
  try {
    const broker = new Broker(config, log, options.helloDeadlineMs, store)
    await broker.recover()
    await broker.listen(socketPath)
    return broker
  } catch (error) {
    await store?.close()
    throw error
  }
}

/** The addon asks the kernel who connects; without it, the socket's mode is all that keeps others out. */
function checkUsersCanBeTold({ allowUids, allowGids }: BrokerConfig): void {
  const ring = ringSupport()
  if (ring.supported || allowUids.length + allowGids.length === 0) return
  throw new FabricError(
    'FABRIC_CONFIG_INVALID',
    `who connects cannot be told here, so the socket stays closed to other users: ${ring.reason}`,
    { field: allowUids.length > 0 ? 'allowUids' : 'allowGids' },
  )
}

/** What has been settled is given so long to reach the disk at the end, whatever drainTimeoutMs is. */
const DISK_DRAIN_MS = 5_000

class Broker implements RunningBroker {
  socketPath = ''
  httpUrl = ''
  readonly #clock: Clock = monotonicClock()
  readonly #budgetRule: BudgetRule
  readonly #brokerLife = randomBytes(8).readBigUInt64LE()
  readonly #stats = new Stats()
  readonly #jobs: JobTable
  readonly #engine: Engine
  readonly #commands: Commands
  readonly #rings: RingBudget
  readonly #jobLife: JobLife
  readonly #report: Report
  readonly #story: Story
  readonly #connections = new Set<Connection>()
  readonly #admission: Admission
  readonly #closing = new AbortController()
  readonly #host: ConnectionHost
  #listener: UnixListener | null = null
  #http: HttpServer | null = null
  #sweepTimer: NodeJS.Timeout | null = null
  draining = false
  #stopped: Promise<void> | null = null
  #hurry: () => void = () => {}

  constructor(
    readonly config: BrokerConfig,
    readonly log: Logger,
    readonly helloDeadlineMs: number | undefined,
    readonly store: Store | null,
  ) {
    this.#budgetRule = budgetRuleOf(config)
    warmUp(this.#coreConfig())
    this.#story = new Story(log)
    this.#rings = new RingBudget({ ...config, budgetRule: this.#budgetRule })
    this.#admission = new Admission(config, (uid) =>
      log.warn({ uid, code: 'FABRIC_CONSUMER_LIMIT' }, 'a crowd connects and does not say hello'),
    )
    const results =
      store === null ? new ResultStore(config.maxKeptResultBytes) : diskResultHome(store)
    this.#jobs = new JobTable(results, config.maxJobs, store?.recovery.lastJob)
    const core = new Core(this.#coreConfig())
    this.#engine = new Engine({
      core,
      clock: this.#clock,
      jobs: this.#jobs,
      stats: this.#stats,
      story: this.#story,
      brokerLife: this.#brokerLife,
      channelDepth: config.channelDepth,
      store,
      dataDir: config.dataDir,
      spillAbove:
        config.spillDir === null
          ? null
          : { items: config.spillAboveItems!, tokens: config.spillAboveTokens! },
      onBug: (error) => this.#die(error),
    })
    const engine = this.#engine
    this.#commands = new Commands(
      {
        items: core.items,
        quarantined: core.quarantined,
        find: (...args) => core.find(...args),
        explain: (slot) => core.explain(slot),
        command: (event) => engine.command(event),
        replayed: (job) => engine.replayed(job),
        now: () => engine.now(),
        disk: engine.disk,
      },
      this.#jobs,
    )
    this.#jobLife = new JobLife(this.#jobs, engine, this.#commands, config, () =>
      this.#refuseWhileDraining(),
    )
    this.#report = new Report({
      config,
      engine,
      jobs: this.#jobLife,
      stats: this.#stats,
      rings: this.#rings,
      store,
      broker: this,
    })
    this.#host = this.#makeHost()
  }

  /** Disk mode goes on where an earlier life ended; memory mode, its spill too, begins with nothing. */
  async recover(): Promise<void> {
    const { disk } = this.#engine
    // The core makes job 0 itself: items without a job belong to it.
    if (disk === null || this.store === null) {
      this.#jobs.create(DEFAULT_JOB)
      return
    }
    const isSpill = this.config.dataDir === null
    this.store.onHealth = (health) => this.#story.storeHealth(health, isSpill)
    this.store.onProblem = ({ message, lost }) => {
      this.#story.storeProblem(message)
      if (lost !== null) this.#engine.lost(lost)
    }
    await disk.recover()
    this.#story.recovered(this.store.recovery)
    this.#jobLife.goOn()
  }

  async listen(socketPath: string): Promise<void> {
    const { allowUids, allowGids } = this.config
    this.socketPath = socketPath
    this.#listener = await UnixListener.open({
      path: socketPath,
      open: allowUids.length + allowGids.length > 0,
      onConnection: (socket) => this.#accept(socket),
      onError: (err) => this.log.error({ err }, 'a consumer could not be accepted'),
    })
    try {
      this.#http = await HttpServer.open(parseAddress(this.config.http), this.#httpFace())
    } catch (error) {
      this.#listener.close()
      this.#engine.stop()
      throw error
    }
    this.httpUrl = this.#http.url
    const everyMs = Math.min(60_000, Math.max(100, this.config.resultsTtlMs / 10))
    this.#sweepTimer = setInterval(() => this.#jobLife.forgetEnded(), everyMs)
    this.#sweepTimer.unref()
    this.#story.started({ socketPath, httpUrl: this.httpUrl }, this.config)
  }

  warn(message: string): void {
    this.#story.log.warn(message)
  }

  state(): BrokerState {
    return this.#report.state()
  }

  stop(): Promise<void> {
    this.#hurry()
    this.#stopped ??= this.#stop()
    return this.#stopped
  }

  async #stop(): Promise<void> {
    this.draining = true
    this.#engine.dispatching = false
    this.#story.draining(this.#left())
    for (const { number, connection } of this.#engine.consumers.values()) {
      this.#engine.drain(number)
      connection.sendDrain()
    }
    await this.#inFlightSettled()
    await this.#diskSettled()
    if (this.#sweepTimer !== null) clearInterval(this.#sweepTimer)
    this.#closing.abort()
    for (const job of this.#jobs) job.wake()
    this.#story.drained(this.#left(), this.config.dataDir !== null)
    this.#engine.stop()
    this.#listener?.close()
    for (const connection of this.#connections) connection.leave()
    await this.#http?.close()
    await this.store?.close()
  }

  /** What was settled is on disk, or the disk takes too long: then it is settled again in the next life. */
  async #diskSettled(): Promise<void> {
    const { disk } = this.#engine
    if (disk === null) return
    const late = new Promise<void>((resolve) => {
      this.#hurry = resolve
      setTimeout(resolve, Math.max(DISK_DRAIN_MS, this.config.drainTimeoutMs)).unref()
    })
    await disk.settled(late)
  }

  #left(): { waiting: number; leased: number } {
    const { waiting, leased } = this.#engine.counts()
    return { waiting: waiting.items, leased }
  }

  /** Resolves when no consumer works on anything, after drainTimeoutMs, or when told to hurry. */
  #inFlightSettled(): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer)
        this.#engine.onStep = null
        resolve()
      }
      const check = () => {
        if (this.#engine.counts().leased === 0) done()
      }
      const timer = setTimeout(done, this.config.drainTimeoutMs)
      this.#hurry = done
      this.#engine.onStep = check
      check()
    })
  }

  #accept(socket: Socket): void {
    const connection = new Connection(socket, this.#host, this.helloDeadlineMs)
    if (connection.closed) return
    this.#connections.add(connection)
    this.#admission.enter(connection)
  }

  #makeHost(): ConnectionHost {
    const { config } = this
    const engine = () => this.#engine
    return {
      rings: this.#rings,
      brokerLife: this.#brokerLife,
      leaseTimeoutMs: config.leaseTimeoutMs,
      roundTo: config.roundTo,
      layout: defaultLayout(this.#budgetRule),
      log: this.log,
      admit: (credentials) => {
        this.#admission.check(credentials)
        this.#refuseWhileDraining()
      },
      introduced: (connection) => this.#admission.register(connection),
      uniqueName: (wanted) => this.#uniqueName(wanted),
      register: (connection, info) => engine().register(connection, info),
      ready: (consumer, warnings) => engine().ready(consumer, warnings),
      renew: (consumer) => engine().renew(consumer),
      taken: (consumer, batch) => engine().taken(consumer, batch),
      results: (consumer, message) => engine().results(consumer, message),
      takesEarlierResults: config.dataDir !== null,
      earlierResults: (consumer, message) => engine().earlierResults(consumer, message),
      drain: (consumer) => engine().drain(consumer),
      room: (consumer, hasRoom) => engine().room(consumer, hasRoom),
      gone: (connection, consumer, cause) => this.#gone(connection, consumer, cause),
    }
  }

  #uniqueName(wanted: string): string {
    const used = new Set(Array.from(this.#engine.consumers.values(), ({ name }) => name))
    // Names stand in logs, labels and terminals.
    const plain = wanted.replace(/\p{C}/gu, '?')
    let name = plain
    for (let i = 2; used.has(name); i++) name = `${plain}-${i}`
    return name
  }

  #gone(connection: Connection, consumer: number | null, cause: DeathCause): void {
    this.#connections.delete(connection)
    this.#admission.leave(connection)
    if (consumer === null) return
    this.#stats.addRing(connection.channel.ring())
    this.#engine.disconnect(consumer, cause)
  }

  #httpFace(): HttpFace {
    return {
      ingest: {
        job: (id) => this.#jobs.get(id),
        submit: (job, block, durable) => this.#submit(job, block, durable),
        room: () => this.#engine.disk?.submissions.room() ?? Promise.resolve(),
        canBeDurable: this.config.dataDir !== null,
        maxItemBytes: this.config.maxItemBytes,
      },
      jobs: this.#jobLife,
      items: {
        commands: this.#commands,
        drainConsumer: (name) => this.#engine.drainByName(name),
      },
      results: {
        jobs: this.#jobs,
        resultsRead: (job, bytes) => this.#engine.resultsRead(job, bytes),
        maxUnreadResultBytes: this.config.maxUnreadResultBytes,
        closing: this.#closing.signal,
      },
      observed: this.#report,
      limits: this.config,
      log: this.log,
    }
  }

  #submit(job: Job, block: SubmitBlock, durable: boolean): SubmitAnswer {
    this.#refuseWhileDraining()
    this.#jobLife.checkOpen(job)
    return this.#engine.submit(job, block, durable)
  }

  #refuseWhileDraining(): void {
    if (this.draining)
      throw new FabricError('FABRIC_DRAINING', 'the broker is shutting down and takes nothing new')
  }

  #coreConfig(): CoreConfig {
    return {
      ...this.config,
      brokerLife: this.#brokerLife,
      hashSeed: randomBytes(4).readInt32LE(),
    }
  }

  /** State that a defect has touched can't be trusted: the process ends, loudly. */
  #die(error: unknown): void {
    this.log.fatal({ err: error }, 'a defect was found; the broker ends')
    setImmediate(() => {
      throw error
    })
  }
}

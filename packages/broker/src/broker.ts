// The broker as a whole: core, engine, listeners and stores put together, started and stopped. The
// command and programs that embed a broker both come through `startBroker`.
import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import type { BudgetRule, CoreConfig, CoreCounts, DeathCause, SubmitBlock } from '@fabric/core'
import { budgetRuleOf, Core, defaultLayout } from '@fabric/core'
import { FabricError, type JobInfo } from '@fabric/protocol'
import { hardenProcess, ringSupport } from '@fabric/shm-ring'
import type { Logger } from 'pino'
import { Connection, type ConnectionHost } from './channels/connection.js'
import { RingBudget } from './channels/ring-budget.js'
import { type Clock, monotonicClock, NS_PER_MS } from './clock.js'
import { Commands } from './commands.js'
import { type ConfigSources, loadConfig, unknownVariables } from './config/load.js'
import type { BrokerConfig } from './config/options.js'
import { diskResultHome } from './durable/durability.js'
import { Engine } from './engine.js'
import type { SubmitAnswer } from './http/ingest.js'
import { type HttpFace, HttpServer, isLoopback, parseAddress } from './http/server.js'
import { DEFAULT_JOB, type Job, JobTable } from './jobs.js'
import { makeLogger } from './log.js'
import { makeRegistry } from './metrics/metrics.js'
import { ResultStore } from './results/store.js'
import { Admission } from './server/admission.js'
import { defaultSocketPath } from './server/socket-path.js'
import { UnixListener } from './server/unix-listener.js'
import { type BrokerState, makeState } from './state.js'
import { Stats } from './stats.js'
import { openStore, type StoreOptions } from './storage/open.js'
import type { Store } from './storage/store.js'
import { Story } from './story.js'
import { VERSION } from './version.js'
import { warmUp } from './warm-up.js'

export interface BrokerOptions extends ConfigSources {
  /** Default: as logLevel and logFormat say. */
  readonly log?: Logger
  /** How long a connection may take to introduce itself. */
  readonly helloDeadlineMs?: number
  /** Another store than the one in dataDir, in disk mode. */
  readonly openStore?: (dataDir: string, options: StoreOptions) => Promise<Store>
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
  const { dataDir, maxKeptResultBytes, sync, syncIntervalMs, diskReserveBytes } = config
  const settings = { maxKeptResultBytes, sync, syncIntervalMs, diskReserveBytes }
  const open = options.openStore ?? openStore
  const store = dataDir === null ? null : await open(dataDir, settings)
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
  readonly #startedAt = new Date()
  readonly #budgetRule: BudgetRule
  readonly #brokerLife = randomBytes(8).readBigUInt64LE()
  readonly #stats = new Stats()
  readonly #jobs: JobTable
  readonly #engine: Engine
  readonly #commands: Commands
  readonly #rings: RingBudget
  readonly #story: Story
  readonly #connections = new Set<Connection>()
  readonly #admission: Admission
  readonly #closing = new AbortController()
  readonly #host: ConnectionHost
  #listener: UnixListener | null = null
  #http: HttpServer | null = null
  #sweepTimer: NodeJS.Timeout | null = null
  #draining = false
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
      },
      this.#jobs,
    )
    this.#host = this.#makeHost()
  }

  /** Disk mode goes on where an earlier life ended; memory mode begins with nothing. */
  async recover(): Promise<void> {
    const { disk } = this.#engine
    // The core makes job 0 itself: items without a job belong to it.
    if (disk === null || this.store === null) {
      this.#jobs.create(DEFAULT_JOB)
      return
    }
    this.store.onHealth = (health) => this.#story.storeHealth(health)
    this.store.onProblem = ({ message, lost }) => {
      this.#story.storeProblem(message)
      if (lost !== null) this.#engine.lost(lost)
    }
    await disk.recover()
    this.#story.recovered(this.store.recovery)
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
    this.#sweepTimer = setInterval(() => this.#forgetEndedJobs(), everyMs)
    this.#sweepTimer.unref()
    this.#story.started({ socketPath, httpUrl: this.httpUrl }, this.config.dataDir)
  }

  warn(message: string): void {
    this.#story.log.warn(message)
  }

  state(): BrokerState {
    const now = this.#clock.now()
    const jobs = Array.from(this.#jobs)
    return makeState(
      {
        version: VERSION,
        startedAt: this.#startedAt.toISOString(),
        uptimeSeconds: now / 1e9,
        draining: this.#draining,
        socketPath: this.socketPath,
        httpUrl: this.httpUrl,
        jobs: { known: jobs.length, ended: jobs.filter((job) => job.state === 'ended').length },
        rings: { usedBytes: this.#rings.usedBytes, maxBytes: this.config.ringBytesMax },
        storage: this.#storage(),
        stalledJobs: this.#stalledJobs(),
      },
      this.#engine.counts(),
      this.#stats,
      this.#engine.consumers,
      now,
    )
  }

  stop(): Promise<void> {
    this.#hurry()
    this.#stopped ??= this.#stop()
    return this.#stopped
  }

  async #stop(): Promise<void> {
    this.#draining = true
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
    this.#story.drained(this.#left(), this.store !== null)
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
    await Promise.race([disk.settled(), late])
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
    let remembered: { counts: CoreCounts; state: BrokerState; atNs: number } | null = null
    // A scrape reads dozens of values: they are of one moment, and the counts are made once.
    const snapshot = () => {
      const now = this.#clock.now()
      if (remembered === null || now - remembered.atNs > 20 * NS_PER_MS)
        remembered = { counts: this.#engine.counts(), state: this.state(), atNs: now }
      return remembered
    }
    return {
      ingest: {
        job: (id) => this.#jobs.get(id),
        submit: (job, block, durable) => this.#submit(job, block, durable),
        room: () => this.#engine.disk?.submissions.room() ?? Promise.resolve(),
        canBeDurable: this.store !== null,
        maxItemBytes: this.config.maxItemBytes,
      },
      jobs: {
        jobs: this.#jobs,
        createJob: (id, model, weight) => this.#createJob(id, model, weight),
        flushJob: (job) => this.#flushJob(job),
        deleteJob: (job) => this.#deleteJob(job),
        cancelJob: (job) => this.#cancelJob(job),
        setPaused: (job, paused) => this.#setPaused(job, paused),
        jobInfo: (job) => job.info(this.#leasedByJob().get(job.number) ?? 0),
        jobInfos: () => this.#jobInfos(),
      },
      items: {
        commands: this.#commands,
        drainConsumer: (name) => this.#drainConsumer(name),
      },
      results: {
        jobs: this.#jobs,
        resultsRead: (job, bytes) => this.#engine.resultsRead(job, bytes),
        maxUnreadResultBytes: this.config.maxUnreadResultBytes,
        closing: this.#closing.signal,
      },
      observed: {
        state: () => this.state(),
        readiness: () => this.#readiness(),
        health: () => (this.store?.health.state === 'degraded' ? 'degraded' : 'healthy'),
        info: () => this.#info(),
        registry: makeRegistry({
          stats: this.#stats,
          counts: () => snapshot().counts,
          state: () => snapshot().state,
          rings: () => this.#stats.ringTotals(snapshot().state.consumers),
        }),
      },
      limits: this.config,
      log: this.log,
    }
  }

  #submit(job: Job, block: SubmitBlock, durable: boolean): SubmitAnswer {
    this.#refuseWhileDraining()
    // A long body is taken in turns; its job may be deleted in between.
    if (job.deleted) throw new FabricError('FABRIC_NOT_FOUND', `job ${job.id} was deleted`)
    if (job.cancelled)
      throw new FabricError('FABRIC_JOB_CANCELLED', `job ${job.id} was cancelled`, { field: 'job' })
    return this.#engine.submit(job, block, durable)
  }

  /** Resolves when the job is kept: durably, in disk mode. */
  async #createJob(id: string | undefined, model: number | null, weight: number): Promise<Job> {
    this.#refuseWhileDraining()
    const job = this.#jobs.create(id, model, weight)
    this.#engine.createJob(job)
    try {
      await this.#engine.disk?.createJob(job)
    } catch (error) {
      if (!job.deleted) this.#engine.deleteJob(job)
      throw error
    }
    return job
  }

  async #flushJob(job: Job): Promise<void> {
    this.#engine.flush(job)
    await this.#engine.disk?.updateJob(job)
  }

  /**
   * Its results say what was cancelled. What waits on disk has no result to come: there the job goes
   * as a whole, and so it does where nothing is left to end.
   */
  async #cancelJob(job: Job): Promise<boolean> {
    if (this.store !== null) return false
    // The default job stays open: it is nobody's alone.
    if (job.id !== DEFAULT_JOB) job.cancelled = true
    await this.#commands.cancelAll(job)
    if (job.cancelled && !job.deleted) await this.#flushJob(job)
    return true
  }

  async #setPaused(job: Job, paused: boolean): Promise<void> {
    this.#commands.setPaused(job, paused)
    await this.#engine.disk?.updateJob(job)
  }

  #drainConsumer(name: string): void {
    for (const consumer of this.#engine.consumers.values()) {
      if (consumer.name !== name) continue
      this.#engine.drainFor(consumer)
      return
    }
    throw new FabricError('FABRIC_NOT_FOUND', `no consumer ${JSON.stringify(name)} is connected`, {
      field: 'name',
    })
  }

  /** The default job is never missing: deleted, it begins anew. */
  async #deleteJob(job: Job): Promise<void> {
    const { disk } = this.#engine
    this.#engine.deleteJob(job)
    const writes = [disk?.deleteJob(job)]
    if (job.id === DEFAULT_JOB) {
      const anew = this.#jobs.create(DEFAULT_JOB)
      this.#engine.createJob(anew)
      writes.push(disk?.createJob(anew))
    }
    await Promise.all(writes)
  }

  /** Jobs that go on only when someone reads (S34): what `fabric-broker status` shows. */
  #stalledJobs(): BrokerState['stalledJobs'] {
    const held = this.#engine.counts().jobs.filter(({ onHold }) => onHold)
    return held.flatMap(({ job: number, waiting, unreadResultBytes, paused }) => {
      const job = Array.from(this.#jobs).find((each) => each.number === number)
      const unread = `${unreadResultBytes} bytes of its results are unread (maxUnreadResultBytes ${this.config.maxUnreadResultBytes}): it goes on when they are read`
      const reason = paused ? 'it is paused, and goes on when it is resumed' : unread
      return job === undefined ? [] : [{ id: job.id, waiting, unreadResultBytes, reason }]
    })
  }

  #storage(): BrokerState['storage'] {
    const { store } = this
    const { disk } = this.#engine
    if (store === null || disk === null) return { mode: 'memory', durable: false }
    const { fileBytes, usedBytes } = store.size()
    return {
      mode: 'disk',
      durable: true,
      dataDir: this.config.dataDir ?? '',
      fileBytes,
      usedBytes,
      appendingBytes: disk.submissions.bytesUnderWay,
      settlingBytes: disk.settlements.bytesUnderWay,
      health: store.health,
    }
  }

  #leasedByJob(): Map<number, number> {
    return new Map(this.#engine.counts().jobs.map(({ job, leased }) => [job, leased]))
  }

  #jobInfos(): JobInfo[] {
    const leased = this.#leasedByJob()
    return Array.from(this.#jobs, (job) => job.info(leased.get(job.number) ?? 0))
  }

  #forgetEndedJobs(): void {
    const before = this.#clock.now() - this.config.resultsTtlMs * NS_PER_MS
    for (const job of Array.from(this.#jobs))
      if (job.endedNs !== null && job.endedNs <= before)
        // What fails is logged there, and is tried again by the next life's sweep.
        this.#deleteJob(job).catch(() => {})
  }

  #readiness(): { ready: boolean; reasons: string[] } {
    const { unservedItems } = this.#engine.counts()
    const health = this.store?.health
    const reasons = [
      ...(this.#draining ? ['draining'] : []),
      ...(health?.state === 'degraded' ? [`nothing new is accepted: ${health.message}`] : []),
      ...(this.#engine.consumers.size === 0 ? ['no consumer is connected'] : []),
      ...unservedItems.map(
        ({ model, items }) => `no consumer serves model ${model}; ${items} items wait for it`,
      ),
    ]
    return { ready: reasons.length === 0, reasons }
  }

  #info(): Record<string, unknown> {
    const { maxBodyBytes, maxItemsPerRequest, maxItemBytes, maxQueuedItems, maxQueuedTokens } =
      this.config
    return {
      name: 'fabric-broker',
      version: VERSION,
      storage: { mode: this.config.mode, durable: this.store !== null },
      socketPath: this.socketPath,
      limits: { maxBodyBytes, maxItemsPerRequest, maxItemBytes, maxQueuedItems, maxQueuedTokens },
    }
  }

  #refuseWhileDraining(): void {
    if (this.#draining)
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

// The log lines that tell the story of a run: what the broker promises, who came and went and why,
// when the gate opened, how the tail was drained. One line each, with the numbers beside the words.

import type { Effect } from '@fabric/core'
import type { Logger } from 'pino'
import type { Consumer } from './engine-parts.js'
import type { Job } from './jobs.js'
import type { Recovery, StoreHealth } from './storage/store.js'

const seconds = (ns: number) => Math.round(ns / 1e6) / 1e3

export class Story {
  constructor(readonly log: Logger) {}

  started(
    where: { socketPath: string; httpUrl: string },
    { dataDir, spillDir }: { dataDir: string | null; spillDir: string | null },
  ): void {
    const spill = spillDir === null ? '' : `; what memory has no room for waits in ${spillDir}`
    if (dataDir === null)
      this.log.info(
        { ...where, storage: 'memory', durable: false, ...(spillDir === null ? {} : { spillDir }) },
        `started; storage: memory, not durable: what waits is lost when this process ends${spill}`,
      )
    else
      this.log.info(
        { ...where, storage: 'disk', durable: true, dataDir },
        `started; storage: disk, durable: what is accepted is in ${dataDir} before its producer is told, and outlives this process`,
      )
  }

  recovered({ jobs, problems }: Recovery): void {
    const waiting = jobs.flatMap(({ shapes }) => shapes).reduce((sum, { items }) => sum + items, 0)
    const unread = jobs.reduce(
      (sum, { results }) => sum + results.endOffset - results.readOffset,
      0,
    )
    if (jobs.length > 0)
      this.log.info(
        { jobs: jobs.length, waiting, unread },
        `went on with ${jobs.length} jobs of an earlier life: ${waiting} items wait, ${unread} results are unread`,
      )
    for (const problem of problems) this.storeProblem(problem)
  }

  storeProblem(message: string): void {
    this.log.error({ storage: 'disk' }, message)
  }

  storeHealth(health: StoreHealth, isSpill: boolean): void {
    const refused = isSpill ? 'no more than memory holds' : 'nothing new'
    if (health.state === 'ok') this.log.info('the disk takes writes again: items are accepted')
    else
      this.log.error(
        { code: health.code },
        `${refused} is accepted, what was accepted goes on: ${health.message}`,
      )
  }

  readFailed(error: unknown): void {
    this.log.error({ err: error }, 'items could not be read from disk; it is tried again')
  }

  settleFailed(error: unknown, items: number): void {
    this.log.error(
      { err: error, items },
      `${items} results could not be kept: no batch goes out any more, and the items are done again when the broker is started anew`,
    )
  }

  quarantineUnreadable(path: string, error: unknown): void {
    this.log.error(
      { err: error, path },
      `a quarantined item cannot be read; its file stays: ${path}`,
    )
  }

  quarantineNotKept(error: unknown): void {
    this.log.error({ err: error }, 'the quarantine on disk is not as it is in memory')
  }

  earlierResults(taken: number, dropped: number): void {
    this.log.info(
      { taken, dropped },
      `a consumer brought results of an earlier life of this broker: ${taken} were of items that still wait, ${dropped} of none`,
    )
  }

  jobWriteFailed(error: unknown): void {
    this.log.error({ err: error }, 'the state of a job could not be kept')
  }

  registered(consumer: Consumer, warnings: readonly string[]): void {
    const { name, contract, transportReason, pid, uid, host, connection } = consumer
    const { transport } = connection.channel
    const ring = connection.channel.ring()
    this.log.info(
      {
        consumer: name,
        contract,
        transport,
        reason: transportReason,
        ringBytes: ring?.capacityBytes,
        pageSizeBytes: ring?.pageSizeBytes,
        pid,
        uid,
        host,
      },
      `consumer ${name} registered; batches go by ${transport} (${transportReason})`,
    )
    for (const warning of warnings) this.log.warn({ consumer: name }, warning)
  }

  jobEnded(job: Job, now: number): void {
    const items = job.settledItems
    const lasted = job.firstDispatchNs === null ? 0 : seconds(now - job.firstDispatchNs)
    this.log.info(
      { job: job.id, items, batches: job.batches, seconds: lasted, settled: job.settled },
      `job ${job.id} ended: ${items} items in ${job.batches} batches, ${lasted} s`,
    )
  }

  draining(left: { waiting: number; leased: number }): void {
    this.log.info(left, 'draining: nothing new is accepted or dispatched')
  }

  drained(left: { waiting: number; leased: number }, durable: boolean): void {
    const count = left.waiting + left.leased
    if (count === 0) this.log.info(left, 'drained')
    else if (durable) this.log.info(left, `drained; ${count} items stay on disk for the next start`)
    else
      this.log.warn(left, `drained; ${left.waiting + left.leased} items are lost with this process`)
  }

  tell(effect: Effect, consumers: ReadonlyMap<number, Consumer>): void {
    switch (effect.type) {
      case 'gate':
        this.log.info(
          { reason: effect.reason, heldSeconds: seconds(effect.heldNs) },
          `gate opened after ${seconds(effect.heldNs)} s because of ${effect.reason}`,
        )
        break
      case 'activate':
        this.log.debug(
          { model: effect.model, paddedLength: effect.paddedLength },
          'lane became active',
        )
        break
      case 'cleanup':
        this.#cleanup(effect)
        break
      case 'dead':
        this.#dead(effect, consumers.get(effect.consumer))
        break
      case 'reclaim':
        this.log.info(
          {
            consumer: consumers.get(effect.consumer)?.name,
            batches: effect.batches.length,
            items: effect.items,
          },
          `reclaimed ${effect.items} items`,
        )
        break
      case 'lost':
        this.log.error(
          effect,
          `${effect.items} items of job ${effect.job} are lost: they count as failed`,
        )
        break
      case 'late':
        this.#late(effect, consumers.get(effect.consumer)?.name)
        break
      default:
    }
  }

  #cleanup(effect: Extract<Effect, { type: 'cleanup' }>): void {
    const { model, state, batches, items, ns } = effect
    if (state === 'begin') this.log.info({ model }, `cleanup of model ${model} began`)
    else
      this.log.info(
        { model, batches, items, seconds: seconds(ns) },
        `cleanup of model ${model} ended after ${batches} batches`,
      )
  }

  /** Late is ordinary (S26); a lease that never was is a defect of the consumer, or of another life. */
  #late(effect: Extract<Effect, { type: 'late' }>, consumer: string | undefined): void {
    const { batch, items } = effect
    if (effect.unknownLease)
      this.log.warn(
        { consumer, batch, items, code: 'FABRIC_LEASE_UNKNOWN' },
        `consumer ${consumer} sent results of a batch that this broker never gave out: dropped`,
      )
    else this.log.debug({ consumer, batch, items }, 'late results were dropped')
  }

  #dead(effect: Extract<Effect, { type: 'dead' }>, consumer: Consumer | undefined): void {
    const name = consumer?.name ?? String(effect.consumer)
    if (consumer?.connection.endsCleanly === true)
      this.log.info({ consumer: name }, `consumer ${name} left`)
    else
      this.log.warn(
        { consumer: name, cause: effect.cause },
        `consumer ${name} died: ${effect.cause}`,
      )
  }
}

// A real broker in this process, and its HTTP interface as a test uses it.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type RunningBroker, startBroker } from '@fabric/broker'
import type { ItemInput, ItemsResponse, ResultLine } from '@fabric/protocol'
import { onTestFinished } from 'vitest'

export class RealBroker {
  readonly #running: RunningBroker
  readonly address: string

  private constructor(running: RunningBroker) {
    this.#running = running
    this.address = `unix:${running.socketPath}`
  }

  /** @param socket of a broker that was there before, whose place this one takes */
  static async start(flags: Record<string, unknown> = {}, socket?: string): Promise<RealBroker> {
    const folder = mkdtempSync(join(tmpdir(), 'consumer-broker-'))
    const path = socket ?? join(folder, 'broker.sock')
    const running = await startBroker({
      flags: {
        socket: path,
        http: '127.0.0.1:0',
        logLevel: 'silent',
        hugePages: 'off',
        debuggable: true,
        ...flags,
      },
    })
    onTestFinished(async () => {
      await running.stop()
      rmSync(folder, { recursive: true, force: true })
    })
    return new RealBroker(running)
  }

  get socketPath(): string {
    return this.#running.socketPath
  }

  get consumers() {
    return this.#running.state().consumers
  }

  stop(): Promise<void> {
    return this.#running.stop()
  }

  /** Submits items of a new job, ends its input and waits for all results, by id. */
  async runJob(job: string, items: readonly ItemInput[]): Promise<Map<string, ResultLine>> {
    await this.submit(job, items)
    return this.results(job)
  }

  async submit(job: string, items: readonly ItemInput[]): Promise<void> {
    await this.#post('/v1/jobs', { id: job, model: 1 })
    const answer = (await this.#post(`/v1/items?job=${job}`, { items })) as ItemsResponse
    if (answer.accepted !== items.length) throw new Error(JSON.stringify(answer.items))
    await this.#post(`/v1/jobs/${job}/flush`, {})
  }

  async results(job: string): Promise<Map<string, ResultLine>> {
    const url = `${this.#running.httpUrl}/v1/jobs/${job}/results?follow=true`
    const body = await (await fetch(url)).text()
    const lines = body.trim().split('\n')
    return new Map(lines.map((line) => JSON.parse(line) as ResultLine).map((l) => [l.id, l]))
  }

  async #post(route: string, body: unknown): Promise<unknown> {
    const response = await fetch(this.#running.httpUrl + route, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    const answer = await response.json()
    if (!response.ok) throw new Error(`${route}: ${JSON.stringify(answer)}`)
    return answer
  }
}

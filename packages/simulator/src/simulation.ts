// A scenario on a virtual clock: the broker's own core, and around it what the broker's engine, its
// producers and its consumers would do.
//
// One call of `advance` is one instant: completions, deaths, what the scenario lists, timers, then
// dispatch, until nothing more happens at that time.
import type { Core } from '@fabric/core'
import { Agenda, BEGIN, DEATH, LISTED } from './agenda.js'
import { Arrivals } from './arrivals.js'
import type { SimulatedConsumer } from './consumer.js'
import { usualContract } from './contract.js'
import { Consumers } from './fleet.js'
import type { IdleTime } from './idle-time.js'
import { type Summary, summaryOf } from './report/summary.js'
import type { Tally } from './report/tally.js'
import type { Scenario } from './scenario/read.js'
import { refuse } from './scenario/refusal.js'
import type { EventData } from './scenario/schema.js'
import { Shell, type ShellOptions } from './shell.js'
import { openStreams, toNs } from './sources.js'

export class Simulation {
  readonly #agenda = new Agenda()
  readonly #shell: Shell
  readonly #consumers: Consumers
  readonly #arrivals: Arrivals

  constructor(scenario: Scenario, options: ShellOptions = {}) {
    const { rules, consumers, events } = scenario
    this.#shell = new Shell(rules, options)
    this.#consumers = new Consumers(
      this.#shell,
      this.#agenda,
      usualContract(rules),
      rules.leaseTimeoutMs,
    )
    this.#shell.fleet = this.#consumers
    this.#arrivals = new Arrivals(this.#shell, this.#agenda)
    this.#shell.needsNames ||= speaksOfItems(scenario)
    // They are there before anything happens at time 0, a kill included.
    for (const data of consumers) {
      this.#agenda.plan(0, BEGIN, () => this.#consumers.register(data))
    }
    const streams = openStreams(scenario)
    events.forEach((event, i) => {
      const stream = streams.get(i)
      if (stream !== undefined) this.#arrivals.planStream(i, event, stream)
      else this.#agenda.plan(toNs(event.atUs), phaseOf(event), () => this.#act(event), i)
    })
    this.#agenda.beginOrderAt(events.length)
  }

  get nowNs(): number {
    return this.#shell.nowNs
  }

  get tally(): Tally {
    return this.#shell.tally
  }

  /** Of the broker's present life: for an observer that asks more than a batch says. */
  get core(): Core {
    return this.#shell.core
  }

  /** Of every consumer, in the order in which they first came. */
  readonly idleTimes = (): IdleTime[] =>
    [...this.#consumers.byName.values()].map(({ time }) => time)

  /** One instant; false when nothing more can happen. */
  advance(): boolean {
    const at = this.#nextAtNs()
    if (at === Number.POSITIVE_INFINITY) return false
    if (at > Number.MAX_SAFE_INTEGER) {
      refuse(
        'events',
        'the run goes on beyond 104 days (2^53 ns), where time is not exact any more',
      )
    }
    const shell = this.#shell
    shell.nowNs = at
    do {
      for (let due = this.#agenda.takeDue(at); due !== null; due = this.#agenda.takeDue(at)) {
        due.act()
      }
      if (shell.core.nextTimerAt() <= at) {
        this.#consumers.renewAll()
        shell.step({ type: 'tick' })
      }
      this.#dispatch()
    } while (this.#arrivals.askHeld() || this.#isDue(at))
    shell.options.observer?.instant(at, () => shell.core.counts())
    return true
  }

  /** To be asked once, when the run has ended. */
  summary(): Summary {
    const { core, tally } = this.#shell
    tally.addCleanup(core.counts().cleanup)
    return summaryOf(tally, this.#consumers.byName)
  }

  #isDue(at: number): boolean {
    return this.#agenda.nextAtNs() <= at || this.#shell.core.nextTimerAt() <= at
  }

  #nextAtNs(): number {
    const { core } = this.#shell
    const planned = this.#agenda.nextAtNs()
    const isMoreToCome =
      planned < Number.POSITIVE_INFINITY ||
      core.nextWorkAt() < Number.POSITIVE_INFINITY ||
      this.#consumers.isDeathToCome
    return isMoreToCome ? Math.min(planned, core.nextTimerAt()) : Number.POSITIVE_INFINITY
  }

  #dispatch(): void {
    do {
      while (this.#shell.dispatch());
    } while (this.#consumers.takeAll())
  }

  #act(event: EventData): void {
    const { submit, flush, kill, stop, cont, drain, restart, register, createJob } = event
    const { cancel, pause, resume } = event
    const consumers = this.#consumers
    if (submit !== undefined) this.#arrivals.submit(submit)
    if (flush !== undefined) this.#arrivals.flush(flush)
    if (kill !== undefined) this.#with(kill, (one) => consumers.die(one))
    if (stop !== undefined) this.#with(stop, (one) => consumers.stop(one))
    if (cont !== undefined) this.#with(cont, (one) => consumers.cont(one))
    if (drain !== undefined) this.#with(drain, (one) => consumers.drain(one))
    if (register !== undefined) consumers.register(register)
    if (createJob !== undefined) this.#arrivals.createJob(createJob)
    if (restart !== undefined) this.#restart()
    if (cancel !== undefined) this.#arrivals.cancel(cancel)
    if (pause !== undefined) this.#arrivals.pause(pause, true)
    if (resume !== undefined) this.#arrivals.pause(resume, false)
  }

  /** One that has not registered yet is nobody: the event passes. */
  #with(name: string, act: (consumer: SimulatedConsumer) => void): void {
    const consumer = this.#consumers.byName.get(name)
    if (consumer !== undefined) act(consumer)
  }

  #restart(): void {
    this.#shell.restart()
    this.#consumers.reconnect()
  }
}

const phaseOf = (event: EventData): number => (event.kill === undefined ? LISTED : DEATH)

/** Scripts and poison name items: then every batch needs the names of its own. */
function speaksOfItems({ consumers, events }: Scenario): boolean {
  const datas = [...consumers, ...events.flatMap(({ register }) => register ?? [])]
  return (
    datas.some(({ script }) => script.some(({ item }) => item !== undefined)) ||
    events.some(({ submit }) => submit?.some(({ poison }) => poison === true))
  )
}

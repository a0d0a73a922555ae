// How long a consumer worked and how long it had nothing to do.
//
// Idle time counts from the first dispatch of the consumer's model. The share of the design's README
// is of the time until the input ended, which is known only afterwards: stretches of idle time that
// began or ended after the last input so far are kept apart until more input comes, or none.

/** When a model's work began, and when input for it last came or was ended. */
export interface ModelTimes {
  firstDispatchNs: number
  lastInputNs: number
}

interface Stretch {
  readonly from: number
  readonly to: number
}

const overlap = (one: Stretch, from: number, to: number): number =>
  Math.max(0, Math.min(one.to, to) - Math.max(one.from, from))

export class IdleTime {
  busyNs = 0
  #idleNs = 0
  /** Idle before the last input, in stretches that need no second look. */
  #duringInputNs = 0
  #open: Stretch[] = []
  #presence: Stretch[] = []
  #presentSince = -1
  #idleSince = -1

  constructor(private readonly model: ModelTimes) {}

  /** The consumer can be given work from now on. */
  arrive(now: number): void {
    this.#presentSince = now
    this.#idleSince = now
  }

  /** It begins to work. */
  begin(now: number): void {
    this.#endIdle(now)
  }

  /** It has worked since `from`, and has nothing else to do. */
  end(from: number, now: number): void {
    this.busyNs += now - from
    if (this.#presentSince >= 0) this.#idleSince = now
  }

  /** It is dead, silent or draining. Work that it broke off counts as work. */
  leave(now: number, workingSince: number): void {
    if (workingSince >= 0) this.busyNs += now - workingSince
    this.#endIdle(now)
    if (this.#presentSince >= 0) this.#presence.push({ from: this.#presentSince, to: now })
    this.#presentSince = -1
  }

  /** As of the end of the run. */
  totals(end: number): { idleNs: number; idleShare: number } {
    const { firstDispatchNs: first, lastInputNs: input } = this.model
    const idle = this.#idleSince >= 0 ? [{ from: this.#idleSince, to: end }] : []
    const present = this.#presentSince >= 0 ? [{ from: this.#presentSince, to: end }] : []
    const sum = (stretches: readonly Stretch[], to: number) =>
      first < 0 ? 0 : stretches.reduce((ns, one) => ns + overlap(one, first, to), 0)
    const idleNs = this.#idleNs + sum(idle, end)
    const idleInput = this.#duringInputNs + sum([...this.#open, ...idle], input)
    const window = sum([...this.#presence, ...present], input)
    // All input was there before the first dispatch: the share is of the whole run.
    const whole = idleNs + this.busyNs
    const idleShare = window > 0 ? idleInput / window : whole > 0 ? idleNs / whole : 0
    return { idleNs, idleShare }
  }

  #endIdle(now: number): void {
    const from = this.#idleSince
    this.#idleSince = -1
    const { firstDispatchNs: first, lastInputNs: input } = this.model
    if (from < 0 || now <= from || first < 0 || now <= first) return
    const stretch = { from: Math.max(from, first), to: now }
    this.#idleNs += stretch.to - stretch.from
    if (this.#open.length > 0 && this.#open[this.#open.length - 1].to <= input) {
      for (const one of this.#open) this.#duringInputNs += one.to - one.from
      this.#open = []
    }
    this.#open.push(stretch)
  }
}

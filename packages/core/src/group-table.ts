// One group of items, and the table of those that wait: what groups.ts works on.

import type { Death } from './effects.js'
import type { Job } from './jobs.js'
import type { Model } from './models.js'

export type GroupKind = 'suspect' | 'half'

export class Group {
  /** Place in the table while it waits, or -1. */
  row = -1
  /** Slots in row order; -1 where an item was settled meanwhile. */
  slots: number[]
  live: number
  /** Deaths of consumers that had taken it whole, or the group it is a half of (S27). */
  deaths = 0
  /** Deaths of consumers that had taken its one item and nothing else (S27). */
  deathsAlone = 0
  /** It is a part of a suspect group: it splits at its first death. */
  isHalf = false
  evidence: readonly Death[] = []
  /** Until then it goes only to a consumer whose name is not in the evidence, or -1 (S27). */
  waitsUntil = -1
  timer = -1
  /** The job on hold with which it waits, or null. */
  heldBy: Job | null = null
  /** By contract class, whether it fits whole; made anew when items or classes change. */
  readonly fits = new Map<object, boolean>()
  fitsVersion = -1

  constructor(
    readonly number: number,
    readonly model: Model,
    readonly kind: GroupKind,
    slots: readonly number[],
  ) {
    this.slots = [...slots]
    this.live = slots.length
  }

  /** A part of it, with its count and its evidence. */
  part(number: number, slots: readonly number[]): Group {
    const part = new Group(number, this.model, this.kind, slots)
    part.deaths = this.deaths
    part.deathsAlone = this.deathsAlone
    part.isHalf = this.isHalf
    part.evidence = this.evidence
    return part
  }
}

export class GroupTable {
  /** Those that wait, by row: items name their group by it. */
  readonly rows: (Group | null)[] = []
  private readonly freeRows: number[] = []
  /** Models with groups that are not held: nearly always none. */
  readonly models: Model[] = []
  private lastNumber = 0

  nextNumber(): number {
    return ++this.lastNumber
  }

  open(group: Group): void {
    group.row = this.freeRows.pop() ?? this.rows.length
    this.rows[group.row] = group
  }

  close(group: Group): void {
    this.rows[group.row] = null
    this.freeRows.push(group.row)
    group.row = -1
  }
}

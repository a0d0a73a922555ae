// Whether a group goes whole to the consumers of a class, and its batch (S19, S27).
//
// The packer's own rules decide, tried on the group: what is allowed here can be dispatched.

import type { ContractClass } from './contracts.js'
import type { Group } from './group-table.js'
import { longestKey } from './groups.js'
import { Packing } from './packer.js'
import { shapeOfItem } from './shapes.js'
import type { State } from './state.js'

export function fitsClass(state: State, group: Group, cls: ContractClass): boolean {
  const { model, fits } = group
  if (group.fitsVersion !== model.classesVersion) fits.clear()
  group.fitsVersion = model.classesVersion
  const known = fits.get(cls)
  if (known !== undefined) return known
  const answer = takes(cls, longestKey(state, group)) && packGroup(state, group, cls) !== null
  fits.set(cls, answer)
  return answer
}

/** A shape that no class of the model holds goes to a consumer with the most tokens (S5). */
function takes(cls: ContractClass, key: number): boolean {
  const { model, contract } = cls
  return cls.holds(key) || (key > model.longestHeldKey && contract.tokens === model.mostTokens)
}

/** How many of the slots, in order from one on, go into one batch of the class. */
export function fittingCount(
  state: State,
  slots: readonly number[],
  from: number,
  cls: ContractClass,
): number {
  const packing = new Packing(state, cls)
  let at = from
  while (at < slots.length && takes(cls, shapeOfItem(state, slots[at]).key)) {
    if (!packing.add(slots[at], 'reclaimed')) break
    at++
  }
  return at - from
}

/** The group as a batch, or null when it does not go into one. */
export function packGroup(state: State, group: Group, cls: ContractClass): Packing | null {
  const packing = new Packing(state, cls)
  for (const slot of group.slots) {
    if (slot >= 0 && !packing.add(slot, 'reclaimed')) return null
  }
  return packing
}

// Descriptors of a ring that nobody will read.
import { closeSync } from 'node:fs'

export function closeDescriptors(descriptors: readonly number[]): void {
  for (const descriptor of descriptors) closeSync(descriptor)
}

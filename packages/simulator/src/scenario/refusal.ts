// How a scenario is refused: one code, and the path of the key in words.
import { FabricError } from '@fabric/protocol'

export function refuse(field: string, message: string): never {
  throw new FabricError('FABRIC_SCENARIO', `${field}: ${message}`, { field })
}

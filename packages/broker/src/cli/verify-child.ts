// The process of `fabric-broker verify` that reads: DIR as argument, the report as JSON on its output.
import { FabricError } from '@fabric/protocol'
import { openEnvironment } from '../storage/environment.js'
import { checkStore } from '../storage/verify.js'

function report(): unknown {
  try {
    return checkStore(openEnvironment(process.argv[2], { readOnly: true }))
  } catch (error) {
    if (error instanceof FabricError) return error.toBody()
    return { code: 'FABRIC_STORE_DAMAGED', message: `reading failed: ${(error as Error).message}` }
  }
}

process.stdout.write(JSON.stringify(report()))

// `fabric simulate`: a scenario through the broker's own core, as JSON lines on standard output.
import { readScenario, type Scenario, Simulation } from '@fabric/simulator'
import { LineOutput } from './line-output.js'
import { EXIT } from './options.js'
import { printComparison } from './simulate-compare.js'

export interface SimulateFlags {
  readonly summary?: boolean
  readonly asPublished?: boolean
  readonly compare?: boolean
  readonly json?: boolean
}

export async function simulateCommand(file: string, flags: SimulateFlags): Promise<number> {
  const scenario = readScenario(file, { asPublished: flags.asPublished === true })
  if (flags.compare === true) {
    await printComparison(scenario, flags.json === true)
    return EXIT.completed
  }
  return printRun(scenario, flags)
}

async function printRun(scenario: Scenario, flags: SimulateFlags): Promise<number> {
  const output = new LineOutput(process.stdout)
  const simulation = new Simulation(
    scenario,
    flags.summary === true ? {} : { onLine: (line) => output.write(JSON.stringify(line)) },
  )
  while (simulation.advance()) {
    if (output.isFull) await output.drained()
    if (output.isClosed) return EXIT.completed
  }
  output.write(JSON.stringify(simulation.summary()))
  await output.end()
  return EXIT.completed
}

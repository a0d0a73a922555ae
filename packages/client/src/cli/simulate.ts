// `fabric simulate`: a scenario through the broker's own core, as JSON lines on standard output.
import { writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { FabricError } from '@fabric/protocol'
import { Recorder, readScenario, renderPage, type Scenario, Simulation } from '@fabric/simulator'
import { LineOutput } from './line-output.js'
import { EXIT } from './options.js'
import { printComparison } from './simulate-compare.js'

export interface SimulateFlags {
  readonly summary?: boolean
  readonly asPublished?: boolean
  readonly compare?: boolean
  readonly json?: boolean
  readonly html?: string
}

export async function simulateCommand(file: string, flags: SimulateFlags): Promise<number> {
  checkFlags(flags)
  const scenario = readScenario(file, { asPublished: flags.asPublished === true })
  if (flags.compare === true) await printComparison(scenario, flags.json === true)
  else await printRun(scenario, titleOf(file), flags)
  return EXIT.completed
}

function checkFlags({ compare, json, summary, html }: SimulateFlags): void {
  const refuse = (message: string) => {
    throw new FabricError('FABRIC_USAGE', message)
  }
  if (json === true && compare !== true) refuse('--json goes with --compare: lines are JSON anyway')
  if (compare === true && summary === true) refuse('--summary does not go with --compare')
  if (compare === true && html !== undefined) refuse('--html does not go with --compare')
}

const titleOf = (file: string): string =>
  file === '-' ? 'scenario' : basename(file).replace(/\.json$/, '')

async function printRun(scenario: Scenario, title: string, flags: SimulateFlags): Promise<void> {
  const output = new LineOutput(process.stdout)
  const recorder = flags.html === undefined ? null : new Recorder()
  const simulation = new Simulation(scenario, {
    ...(flags.summary === true || recorder !== null
      ? {}
      : { onLine: (line: object) => output.write(JSON.stringify(line)) }),
    ...(recorder === null ? {} : { observer: recorder }),
  })
  while (simulation.advance()) {
    if (output.isFull) await output.drained()
    if (output.isClosed) return output.end()
  }
  const summary = simulation.summary()
  output.write(JSON.stringify(summary))
  await output.end()
  // After the summary: a page that cannot be written must not cost the run.
  if (recorder !== null) {
    writePage(flags.html!, renderPage(title, summary, simulation.tally, recorder))
  }
}

function writePage(file: string, page: string): void {
  try {
    writeFileSync(file, page)
  } catch (cause) {
    const message = `${file} cannot be written (${(cause as Error).message})`
    throw new FabricError('FABRIC_OUTPUT', message, { cause })
  }
}

// The command `fabric`: its commands, their flags, and how failures leave it.
import { readFileSync } from 'node:fs'
import { FabricError } from '@fabric/protocol'
import { Command, CommanderError, Option } from 'commander'
import { Signals } from './interrupt.js'
import { manageProgram } from './manage.js'
import {
  apiKeyOption,
  brokerOption,
  EXIT,
  inputOptions,
  type RunOptions,
  restartOption,
  retryOption,
} from './options.js'
import { type ResultsFlags, resultsCommand } from './results.js'
import { runCommand } from './run.js'
import { type SimulateFlags, simulateCommand } from './simulate.js'
import { statusCommand } from './status.js'
import { submitCommand } from './submit.js'

const { version } = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
) as { version: string }

const LINES = `
A line is {"id"?, "text"} with --tokenizer, {"id"?, "tokens": [..]}, or {"id"?, "payload", "length"}.
Killed at any point, the same command goes on where it was.
Exit code: 0 all completed, 1 could not run, 2 wrong usage, 3 some items failed, 130 interrupted.`

let exitCode: number = EXIT.completed
const signals = new Signals()
const outputOption = () =>
  new Option(
    '-o, --output <file>',
    "where the results go, '-' for standard output",
  ).makeOptionMandatory()

function withOptions(command: Command, options: readonly Option[]): Command {
  for (const option of options) command.addOption(option)
  return command
}

function runProgram(program: Command): void {
  const run = program
    .command('run')
    .argument('<input>', "JSONL file of items, '-' for standard input")
    .description('submit a file of items and write their results to another')
    .addOption(outputOption())
  withOptions(run, [
    ...inputOptions(),
    new Option('--order <order>', 'order of the output')
      .choices(['input', 'completion'])
      .default('input'),
    restartOption(),
    brokerOption(),
    apiKeyOption(),
    retryOption(),
    new Option('--no-progress', 'no progress display'),
    new Option('--quiet', 'nothing but errors'),
    new Option('--summary <format>', 'form of the summary')
      .choices(['text', 'json'])
      .default('text'),
  ])
    .addHelpText('after', LINES)
    .action(async (input: string, options: RunOptions) => {
      exitCode = await runCommand(input, options, signals)
    })
}

function otherPrograms(program: Command): void {
  const submit = program
    .command('submit')
    .argument('<input>', "JSONL file of items, '-' for standard input")
    .description('submit a file of items, end the input and print the id of the job')
  const broker = () => [brokerOption(), apiKeyOption(), retryOption()]
  withOptions(submit, [...inputOptions(), ...broker()]).action(async (input, options) => {
    exitCode = await submitCommand(input, options, signals)
  })
  const results = program
    .command('results')
    .argument('<job>', 'id of the job')
    .description('write the results of a job to a file until it ends')
    .option('--no-follow', 'only the results that are there')
  withOptions(results, [outputOption(), restartOption(), ...broker()]).action(
    async (job: string, options: ResultsFlags) => {
      exitCode = await resultsCommand(job, options, signals)
    },
  )
  const status = program.command('status').description('show what the broker holds and serves')
  withOptions(status, [brokerOption(), apiKeyOption()]).action(async (options) => {
    exitCode = await statusCommand(options)
  })
}

function simulateProgram(program: Command): void {
  program
    .command('simulate')
    .argument('<scenario>', "JSON file of a scenario, '-' for standard input")
    .description('run the broker’s core on a scenario, on a virtual clock')
    .option('--summary', 'only the last line')
    .option('--as-published', 'every rule as the published design has it')
    .option('--compare', 'the same workload under other rules, side by side')
    .option('--json', 'the comparison as JSON')
    .option('--html <file>', 'a page with plots of the run; beside it the summary only')
    .action(async (scenario: string, flags: SimulateFlags) => {
      exitCode = await simulateCommand(scenario, flags)
    })
}

/** The exit code of what was thrown, said on stderr unless commander has said it. */
function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.completed : EXIT.usage
  if (error instanceof FabricError) {
    process.stderr.write(`fabric: ${error.message} (${error.code})\n`)
    return error.code === 'FABRIC_USAGE' ? EXIT.usage : EXIT.couldNotRun
  }
  process.stderr.write(`fabric: ${error instanceof Error ? error.stack : String(error)}\n`)
  return EXIT.couldNotRun
}

const program = new Command('fabric')
  .description('Producer command of Inference Fabric')
  .version(version)
  .exitOverride()
  .configureHelp({ showGlobalOptions: true })
  .configureOutput({
    outputError: (text, write) => write(text.replace(/^error: /, 'fabric: ')),
  })
runProgram(program)
otherPrograms(program)
simulateProgram(program)
manageProgram(program)

try {
  await program.parseAsync()
} catch (error) {
  exitCode = exitCodeOf(error)
}
// Standard input and idle connections may be open still: there is nothing left to wait for.
process.exit(exitCode)

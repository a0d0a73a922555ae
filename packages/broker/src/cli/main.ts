// The command `fabric-broker`. Flags are made from the option table; a failure is one line on
// standard error and exit code 1, or 2 when the command was called wrongly.

import type { Option } from '@fabric/core'
import { FabricError } from '@fabric/protocol'
import { Command, CommanderError, Option as Flag } from 'commander'
import { environmentOf, flagOf, OPTION_NAMES, OPTIONS } from '../config/options.js'
import { configSchema, defaultInWords } from '../config/reference.js'
import { VERSION } from '../version.js'
import { drainConsumer } from './drain.js'
import { type DumpFlags, dump } from './dump.js'
import { ringStat } from './ring-stat.js'
import { serve } from './serve.js'
import { status } from './status.js'
import { verify } from './verify.js'

function addOptions(command: Command): Command {
  for (const name of OPTION_NAMES) {
    const option = OPTIONS[name] as Option<unknown>
    const value = option.kind === 'boolean' ? ' [boolean]' : ` <${option.kind}>`
    const about = `${option.about} (${option.expects}; default: ${defaultInWords(option)}; env: ${environmentOf(name)})`
    command.addOption(new Flag(flagOf(name) + value, about).helpGroup(`${option.group}:`))
  }
  return command
}

function program(): Command {
  const root = new Command('fabric-broker')
    .description('Batching broker: packs ragged items to each GPU’s token budget')
    .version(VERSION)
    .exitOverride()
  addOptions(
    root
      .command('serve')
      .description('run the broker until SIGTERM')
      .option('--config <file>', 'YAML file with options (env: FABRIC_CONFIG)'),
  ).action((flags: Record<string, unknown>) => serve(flags))
  root
    .command('status')
    .description('show consumers, transports, gate and queue of a running broker')
    .option('--broker <url>', 'where it listens', 'http://127.0.0.1:7410')
    .option('--json', 'print the state as JSON')
    .action((flags: { broker: string; json?: boolean }) => status(flags))
  root
    .command('consumers')
    .description('about the consumers of a running broker')
    .command('drain')
    .argument('<name>', 'its name, as status shows it')
    .description('let a consumer finish what it has taken, and leave')
    .option('--broker <url>', 'where it listens', 'http://127.0.0.1:7410')
    .action((name: string, flags: { broker: string }) => drainConsumer(name, flags))
  root
    .command('ring')
    .description('about the shared-memory rings')
    .command('stat')
    .description('show positions, use, gaps, claims and peer of each ring of a running broker')
    .option('--broker <url>', 'where it listens', 'http://127.0.0.1:7410')
    .option('--json', 'print the rings as JSON')
    .action((flags: { broker: string; json?: boolean }) => ringStat(flags))
  const dataDir = () =>
    new Flag('--data-dir <dir>', 'folder of the data (env: FABRIC_DATA_DIR)')
      .env('FABRIC_DATA_DIR')
      .makeOptionMandatory()
  root
    .command('verify')
    .description(
      'check the data of a broker that is stopped; changes nothing; exit code 1 if it is damaged',
    )
    .addOption(dataDir())
    .option('--json', 'print the report as JSON')
    .action((flags: { dataDir: string; json?: boolean }) => verify(flags))
  root
    .command('dump')
    .description(
      'print jobs, or unsettled items, or results of a data folder, a JSON object a line',
    )
    .addOption(dataDir())
    .option('--job <id>', 'only of this job')
    .option('--items', 'items that are not settled')
    .option('--results', 'results')
    .action((flags: DumpFlags) => dump(flags))
  root
    .command('config')
    .description('about the configuration file')
    .command('schema')
    .description('print the JSON schema of the configuration file')
    .action(() => {
      process.stdout.write(`${JSON.stringify(configSchema(), null, 2)}\n`)
    })
  return root
}

async function main(): Promise<void> {
  try {
    await program().parseAsync()
  } catch (error) {
    if (error instanceof CommanderError) {
      process.exitCode = error.exitCode === 0 ? 0 : 2
      return
    }
    if (!(error instanceof FabricError)) throw error
    process.stderr.write(`fabric-broker: ${error.code}: ${error.message}\n`)
    process.exitCode = error.code === 'FABRIC_USAGE' ? 2 : 1
  }
}

await main()

// `fabric jobs`, `fabric quarantine` and `fabric explain`: what an operator does to work that is there.
import { FabricError } from '@fabric/protocol'
import type { Command } from 'commander'
import { FabricClient, type QuarantineChoice } from '../client.js'
import { count, table } from './format.js'
import { apiKeyOption, type BrokerOptions, brokerOption } from './options.js'

const print = (text: string) => process.stdout.write(`${text}\n`)

function command(parent: Command, name: string, description: string): Command {
  return parent
    .command(name)
    .description(description)
    .addOption(brokerOption())
    .addOption(apiKeyOption())
}

export function manageProgram(program: Command): void {
  jobs(program.command('jobs').description('list, pause, resume and cancel jobs'))
  quarantine(program.command('quarantine').description('items that killed their consumers'))
  command(program, 'explain', 'say why an item waits')
    .argument('<item>', 'id of the item')
    .option('--job <id>', 'the job it belongs to', 'default')
    .action(async (id: string, options: BrokerOptions & { job: string }) => {
      print((await new FabricClient(options).item(id, options)).why)
    })
}

function jobs(parent: Command): void {
  command(parent, 'list', 'all jobs').action(async (options: BrokerOptions) => {
    const infos = await new FabricClient(options).jobs()
    const rows = infos.map((job) => [
      job.id,
      job.paused ? `${job.state}, paused` : job.state,
      count(job.waiting),
      count(job.leased),
      count(job.settled.completed),
      count(job.accepted),
    ])
    print(table([['job', 'state', 'waiting', 'leased', 'completed', 'accepted'], ...rows]))
  })
  for (const verb of ['pause', 'resume', 'cancel'] as const) {
    command(parent, verb, `${verb} a job`)
      .argument('<id>', 'id of the job')
      .action(async (id: string, options: BrokerOptions) => {
        await new FabricClient(options).job(id)[verb]()
        print(`job ${id}: ${verb} done`)
      })
  }
}

interface ChoiceFlags extends BrokerOptions {
  readonly job?: string
  readonly all?: boolean
}

function quarantine(parent: Command): void {
  command(parent, 'list', 'what is kept, with its evidence').action(
    async (options: BrokerOptions) => {
      const entries = await new FabricClient(options).quarantine()
      if (entries.length === 0) {
        print('nothing is in quarantine')
        return
      }
      const rows = entries.map((entry) => [
        entry.job,
        entry.id,
        entry.quarantinedAt,
        String(entry.deaths.length),
        [...new Set(entry.deaths.map(({ consumer }) => consumer))].join(', '),
        entry.deaths.at(-1)?.cause ?? '',
      ])
      print(table([['job', 'item', 'since', 'deaths', 'consumers', 'last cause'], ...rows]))
    },
  )
  for (const verb of ['replay', 'delete'] as const) {
    command(parent, verb, verb === 'replay' ? 'submit items anew' : 'forget items')
      .argument('[ids...]', 'ids of items')
      .option('--job <id>', 'only of this job; alone: all of it')
      .option('--all', 'everything')
      .action(async (ids: string[], options: ChoiceFlags) => {
        const client = new FabricClient(options)
        const chosen = choice(ids, options)
        if (verb === 'replay') print(`${await client.replayQuarantined(chosen)} submitted anew`)
        else print(`${await client.deleteQuarantined(chosen)} deleted`)
      })
  }
}

function choice(ids: readonly string[], { job, all }: ChoiceFlags): QuarantineChoice {
  if (ids.length === 0 && job === undefined && all !== true)
    throw new FabricError('FABRIC_USAGE', 'name items, a job (--job), or say --all')
  return { job, all, ...(ids.length === 0 ? {} : { ids }) }
}

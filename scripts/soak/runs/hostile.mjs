// A hostile consumer beside an honest one, on a real broker whose addon watches its memory.
import { join } from 'node:path'
import { Broker, honestConsumer, items, python, temporaryFolder } from '../lib/broker.mjs'
import { eventually, Leftovers, openDescriptors } from '../lib/leftovers.mjs'
import { root, sanitizedAddon } from '../lib/programs.mjs'

const SCRIPT = join(import.meta.dirname, '../hostile/consumer.py')
const FLAGS = ['--ring-bytes', 4 << 20, '--lease-timeout-ms', 2000, '--lease-max-ms', 4000]
// Items are taken again and again by one who will not settle them: that is not their fault.
const PATIENT = ['--max-deliveries', 65535, '--log-level', 'info']

/** New work all the time, so that there is always some to take hostage. */
async function feed(broker, going) {
  let submitted = 0
  while (going() && broker.alive) {
    await broker.submit(items(submitted, 64))
    submitted += 64
    await eventually(async () => !going() || (await broker.state()).items.waiting < 512, 5_000)
  }
  return submitted
}

/** How long a newcomer may knock, as any consumer does until it is let in. */
const KNOCKING_MS = 30_000

/** Consumers that come while a crowd stands at the door: each is let in. */
async function comeAndGo(socket, newcomers, going) {
  while (going()) {
    const until = Date.now() + KNOCKING_MS
    let welcome = false
    while (!welcome && going() && Date.now() < until) {
      const consumer = honestConsumer(socket, 'newcomer')
      await eventually(() => consumer.output.includes('connected') || !consumer.alive, KNOCKING_MS)
      welcome = consumer.output.includes('connected')
      await consumer.kill()
    }
    if (welcome) newcomers.came++
    else if (going()) newcomers.failed++
  }
}

/** As it is built now: a consumer of another version gets no ring to attack. */
async function ringAbi() {
  const { RING_ABI_VERSION } = await import(join(root, 'packages/shm-ring/dist/index.js'))
  return RING_ABI_VERSION
}

const sanitizerLines = (broker) =>
  broker.lines.filter((line) => /AddressSanitizer|runtime error|LeakSanitizer/.test(line))

export async function hostile(tally, { minutes = 1, seeds = 1 }) {
  const env = sanitizedAddon()
  const before = new Leftovers()
  const socket = join(temporaryFolder(), 'b.sock')
  const broker = await Broker.start(socket, [...FLAGS, ...PATIENT].map(String), env)
  const honest = honestConsumer(socket, 'honest')
  await eventually(async () => (await broker.state()).consumers.length === 1)
  const descriptors = openDescriptors(broker.child.pid)

  const attacker = python(SCRIPT, socket, await ringAbi(), minutes * 60, seeds)
  let attacked = true
  const ended = attacker.exited.then((code) => {
    attacked = false
    return code
  })
  const newcomers = { came: 0, failed: 0 }
  const coming = comeAndGo(socket, newcomers, () => attacked)
  const submitted = await feed(broker, () => attacked)
  await coming
  const ran = (await ended) === 0
  const did = ran ? JSON.parse(attacker.output) : {}
  tally.count(
    ran,
    `the attack ran to its end: ${attacker.output.trim()} ${attacker.lines.slice(-5).join(' ')}`,
  )
  tally.count(did.registered > 0 && did['cut off by the broker'] > 0, 'it had rings and lost them')
  for (const how of ['taken', 'left in the channel'])
    tally.count(did[`holders cut off, ${how}`] > 0, `batches ${how} for ever were reclaimed`)
  tally.count(!attacker.output.includes('FOR EVER'), 'nobody held a batch longer than that')
  tally.count(did['strangers sent away'] > 500, 'a crowd that said nothing was sent away')
  tally.count(!attacker.output.includes('CHANGED'), 'no memory of the broker could be changed')
  tally.count(
    newcomers.came > 0 && newcomers.failed === 0,
    `other consumers could come all the time: ${JSON.stringify(newcomers)}`,
  )
  tally.count(broker.alive && honest.alive, 'broker and honest consumer are up')
  tally.count(sanitizerLines(broker).length === 0, `memory stayed safe ${sanitizerLines(broker)}`)
  if (broker.alive) await judge(tally, broker, submitted, descriptors)
  await honest.kill()
  await broker.kill('SIGTERM')
  await before.count(tally)
}

async function judge(tally, broker, submitted, descriptors) {
  await broker.post('/v1/jobs/default/flush')
  const done = await eventually(
    async () => (await broker.state()).items.settled.completed === submitted,
    120_000,
  )
  const state = await broker.state()
  tally.count(
    done,
    `the honest consumer finished all ${submitted} items (${state.items.reclaimed} reclaimed)`,
  )
  const ids = await broker.resultIds()
  tally.count(ids.length === submitted && new Set(ids).size === submitted, 'each item ended once')
  const names = state.consumers.map(({ name }) => name)
  tally.count(names.join() === 'honest', `the honest consumer alone is left (${names})`)
  const died = broker.log.filter(({ msg }) => /consumer honest (died|left)/.test(msg ?? ''))
  tally.count(died.length === 0, 'it never lost its connection')
  const ring = state.consumers[0]?.transport
  tally.count(ring === 'ring', 'nor its ring')
  const back = await eventually(() => openDescriptors(broker.child.pid) <= descriptors + 4)
  tally.count(
    back,
    `descriptors are closed (${openDescriptors(broker.child.pid)}, ${descriptors} before)`,
  )
}

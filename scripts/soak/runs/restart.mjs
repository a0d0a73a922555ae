// Kill and start again. The ring's two halves as bare processes for all rounds; a real broker and a
// real consumer for one in four: mostly the consumer dies, every fifth time the broker.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { Broker, honestConsumer, items, temporaryFolder } from '../lib/broker.mjs'
import { eventually, Leftovers, openDescriptors } from '../lib/leftovers.mjs'
import { build, runCounted, runVitest } from '../lib/programs.mjs'

const FLAGS = ['--ring-bytes', String(4 << 20), '--log-level', 'info', '--max-deliveries', '65535']

class Product {
  round = 0
  submitted = 0
  folder = temporaryFolder()
  socket = join(this.folder, 'b.sock')

  async start() {
    this.broker = await Broker.start(this.socket, FLAGS)
    this.submitted = 0
    // What Node opens on first use is open from then on.
    await this.broker.state()
    this.descriptors = openDescriptors(this.broker.child.pid)
  }

  /** A consumer is killed with a batch in work: nothing of it stays in the broker. */
  async killConsumer() {
    const { broker } = this
    const consumer = honestConsumer(this.socket, 'gpu0', 'hold')
    const batch = items(this.submitted, 32)
    this.submitted += batch.length
    await broker.submit(batch)
    if (!(await eventually(() => consumer.output.includes('taken'), 60_000)))
      return 'nothing was taken'
    await consumer.kill()
    const gone = await eventually(async () => {
      const state = await broker.state()
      return state.consumers.length === 0 && state.items.leased === 0
    })
    if (!gone) return 'its work was not reclaimed'
    // HTTP connections of this process come and go; they are a few.
    const same = await eventually(() => openDescriptors(broker.child.pid) <= this.descriptors + 4)
    return same
      ? ''
      : `${openDescriptors(broker.child.pid)} descriptors open, not ${this.descriptors}`
  }

  async finishAll() {
    const { broker } = this
    const consumer = honestConsumer(this.socket, 'gpu1')
    await broker.post('/v1/jobs/default/flush')
    const done = await eventually(
      async () => (await broker.state()).items.settled.completed === this.submitted,
      60_000,
    )
    const ids = await broker.resultIds()
    await consumer.kill()
    return done && ids.length === this.submitted && new Set(ids).size === ids.length
  }

  async killBroker() {
    const before = readdirSync(this.folder).sort().join()
    await this.broker.kill()
    await this.start()
    const after = readdirSync(this.folder).sort().join()
    return before === after ? '' : `${before} before, ${after} after`
  }
}

async function product(tally, rounds) {
  const subject = new Product()
  await subject.start()
  let wrong = 0
  for (let round = 1; round <= rounds; round++) {
    const killsBroker = round % 5 === 0
    if (killsBroker && !(await subject.finishAll()))
      tally.count(false, `round ${round}: not every item ended once`)
    const problem = killsBroker ? await subject.killBroker() : await subject.killConsumer()
    if (problem === '') continue
    wrong += 1
    tally.count(false, `round ${round}: ${problem}`)
  }
  tally.add(rounds - wrong, 0, 'real brokers and consumers killed and started again')
  tally.count(await subject.finishAll(), 'what was left of the last round was finished')
  await subject.broker.kill()
}

export async function restart(tally, { rounds = 1000 }) {
  const program = join(build('release', 'ring_kill'), 'soak', 'ring_kill')
  const before = new Leftovers()
  runCounted(tally, `${rounds} rounds of bare processes`, program, [
    'restart',
    '--rounds',
    String(rounds),
  ])
  const endurance = { FABRIC_ROUNDS: String(rounds) }
  runVitest(tally, `${rounds} ends of workers`, 'shm-ring', ['test/endurance.test.ts'], endurance)
  await product(tally, Math.max(5, Math.round(rounds / 4)))
  await before.count(tally)
}

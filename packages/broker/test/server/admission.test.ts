// How many may be connected, and that those who never say hello keep nobody out.
import net from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import {
  Admission,
  GUESTS_MAX,
  GUESTS_PER_UID_MAX,
  type Guest,
} from '../../src/server/admission.ts'
import { items, testBroker } from '../support/broker.ts'
import { FakeConsumer } from '../support/fake-consumer.ts'
import { until } from '../support/until.ts'

const LIMITS = { allowUids: [1000], allowGids: [50], maxConsumers: 4, maxConsumersPerUid: 3 }

class Crowd {
  readonly told: number[] = []
  readonly dismissed: string[] = []
  readonly guests: Guest[] = []
  readonly admission = new Admission(LIMITS, (uid) => this.told.push(uid))

  enter(name: string, uid: number): Guest {
    const guest = {
      uid,
      fail: () => {
        this.dismissed.push(name)
        this.admission.leave(guest)
      },
    }
    this.guests.push(guest)
    this.admission.enter(guest)
    return guest
  }

  fill(count: number, uid: number): void {
    for (let i = 0; i < count; i++) this.enter(`${uid}/${i}`, uid)
  }

  leave(): void {
    for (const guest of this.guests) this.admission.leave(guest)
  }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))
const turns = async (count: number) => {
  for (let i = 0; i < count; i++) await turn()
}

describe('admission: users', () => {
  test('our own user, root, and those named by user or group may connect', () => {
    const { admission } = new Crowd()
    for (const uid of [0, process.getuid!(), 1000]) admission.check({ uid, gid: 7 })
    admission.check({ uid: 2000, gid: 50 })
    const forbidden = () => admission.check({ uid: 2000, gid: 7 })
    expect(forbidden).toThrow(expect.objectContaining({ code: 'FABRIC_FORBIDDEN' }))
  })
})

describe('admission: consumers', () => {
  test('one user may have maxConsumersPerUid, all together maxConsumers', () => {
    const crowd = new Crowd()
    const register = (uid: number) => {
      const guest = crowd.enter('consumer', uid)
      crowd.admission.register(guest)
      return guest
    }
    const own = [register(1), register(1), register(1)]
    expect(() => register(1)).toThrow(/maxConsumersPerUid \(3\) of user 1/)
    register(2)
    expect(() => register(3)).toThrow(/maxConsumers \(4\)/)
    crowd.admission.leave(own[0])
    register(1)
  })

  test('guests take no place of consumers', () => {
    const crowd = new Crowd()
    crowd.fill(GUESTS_PER_UID_MAX, 1)
    const guest = crowd.enter('consumer', 1)
    crowd.admission.register(guest)
    expect(crowd.admission.guests).toBe(GUESTS_PER_UID_MAX)
  })
})

describe('admission: guests', () => {
  test('of one user the oldest go once too many have had time to speak', async () => {
    const crowd = new Crowd()
    crowd.fill(GUESTS_PER_UID_MAX, 1)
    await turns(5)
    expect(crowd.dismissed).toEqual([])
    crowd.enter('one more', 1)
    crowd.enter('another', 1)
    await turns(5)
    expect(crowd.dismissed).toEqual(['1/0', '1/1'])
    expect(crowd.told).toEqual([1])
  })

  test('none goes before a turn in which its hello could be read', async () => {
    const crowd = new Crowd()
    crowd.fill(3 * GUESTS_PER_UID_MAX, 1)
    const late = crowd.enter('late', 1)
    await turn()
    expect(crowd.dismissed).toEqual([])
    crowd.admission.register(late)
    await turns(5)
    expect(crowd.dismissed).not.toContain('late')
    expect(crowd.admission.guests).toBe(GUESTS_PER_UID_MAX)
  })

  test('a crowd of one user sends no guest of another away', async () => {
    const crowd = new Crowd()
    crowd.fill(10, 2)
    crowd.fill(10 * GUESTS_PER_UID_MAX, 1)
    await turns(20)
    expect(crowd.dismissed.filter((name) => name.startsWith('2/'))).toEqual([])
  })

  test('of all users together there are no more than GUESTS_MAX, and the largest crowd gives way', async () => {
    const crowd = new Crowd()
    const users = GUESTS_MAX / 64
    for (let uid = 1; uid <= users; uid++) crowd.fill(64, uid)
    crowd.fill(80, 99)
    await turns(5)
    expect(crowd.admission.guests).toBe(GUESTS_MAX)
    expect(crowd.dismissed.filter((name) => name.startsWith('99/')).length).toBeGreaterThan(15)
  })

  test('the warning comes once for a crowd, and again for the next', async () => {
    const crowd = new Crowd()
    crowd.fill(GUESTS_PER_UID_MAX + 50, 1)
    await turns(5)
    crowd.fill(50, 1)
    await turns(5)
    expect(crowd.told).toEqual([1])
    crowd.leave()
    crowd.fill(GUESTS_PER_UID_MAX + 50, 1)
    await turns(5)
    expect(crowd.told).toEqual([1, 1])
  })
})

describe('admission: a thousand connections that never say hello', () => {
  test('keep no consumer out, and the broker keeps a bounded number of them', async () => {
    const broker = await testBroker({}, { helloDeadlineMs: 600_000 })
    const sockets: net.Socket[] = []
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy()
    })
    let closed = 0
    const connect = () => {
      const socket = net.connect(broker.socketPath).on('error', () => {})
      socket.on('close', () => closed++).resume()
      sockets.push(socket)
    }
    for (let i = 0; i < 500; i++) connect()
    const consumer = FakeConsumer.connect(broker.socketPath)
    for (let i = 0; i < 500; i++) connect()
    const { welcome } = await consumer
    expect(welcome.name).toBe('gpu0')
    await until(() => closed >= 1000 - GUESTS_PER_UID_MAX)
    await broker.post('/v1/items', items(8))
    expect((await (await consumer).nextBatch()).view.size).toBe(8)
    const warnings = broker.log.filter(({ code }) => code === 'FABRIC_CONSUMER_LIMIT')
    expect(warnings).toHaveLength(1)
  })

  test('one consumer more than maxConsumersPerUid is refused, and welcome once another has gone', async () => {
    const broker = await testBroker({ maxConsumersPerUid: 1 })
    const first = await FakeConsumer.connect(broker.socketPath)
    await expect(FakeConsumer.connect(broker.socketPath)).rejects.toMatchObject({
      code: 'FABRIC_CONSUMER_LIMIT',
    })
    first.close()
    await broker.untilState((state) => state.consumers.length === 0)
    await FakeConsumer.connect(broker.socketPath)
  })
})

import { expect, test } from 'vitest'
import { StateView } from '../src/cli/state-view.js'
import { statusText } from '../src/cli/status.js'

const lineOf = (state: Record<string, unknown>) =>
  statusText('http://b', new StateView(state), [])
    .split('\n')
    .find((line) => line.startsWith('disk'))

const health = {
  state: 'degraded',
  code: 'FABRIC_DISK_FULL',
  message: 'less than diskReserveBytes are left for /data/fabric.mdb',
}

test('a disk that is full or fails has a line that says what is refused', () => {
  expect(lineOf({ storage: { mode: 'disk', health } })).toMatch(
    /^disk +nothing new is accepted: less than diskReserveBytes are left for \/data\/fabric.mdb$/,
  )
  expect(lineOf({ storage: { mode: 'memory', spill: { health } } })).toMatch(
    /^disk +no more than memory holds is accepted: less than/,
  )
})

test.each([
  [{ storage: { mode: 'disk', health: { state: 'ok' } } }],
  [{ storage: { mode: 'memory', spill: null } }],
  [{}],
])('a disk that is well, or is none, has no line: %j', (state) => {
  expect(lineOf(state)).toBeUndefined()
})

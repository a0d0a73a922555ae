// docs/http.md names every route that is registered, and no other.
import { readFileSync } from 'node:fs'
import { ERROR_KINDS } from '@fabric/protocol'
import Fastify from 'fastify'
import { expect, test } from 'vitest'
import { itemRoutes } from '../../src/http/item-routes.ts'
import { itemsRoute } from '../../src/http/items-route.ts'
import { jobsRoutes } from '../../src/http/jobs-routes.ts'
import { observeRoutes } from '../../src/http/observe-routes.ts'
import { resultsRoute } from '../../src/http/results-route.ts'

const page = readFileSync(new URL('../../../../docs/http.md', import.meta.url), 'utf8')

/** Routes read what they are given only when they are asked. */
const nothing = {} as never

async function registered(): Promise<string[]> {
  const app = Fastify()
  const found: string[] = []
  app.addHook('onRoute', ({ method, url }) => {
    for (const each of [method].flat()) if (each !== 'HEAD') found.push(`${each} ${url}`)
  })
  jobsRoutes(app, nothing)
  itemRoutes(app, nothing)
  resultsRoute(app, nothing)
  observeRoutes(app, nothing)
  app.register(async (scope) =>
    itemsRoute(scope, nothing, { maxBodyBytes: 1, maxItemsPerRequest: 1 }),
  )
  await app.ready()
  await app.close()
  return found.sort()
}

test('docs/http.md has a row for every route, and none for another', async () => {
  const rows = Array.from(
    page.matchAll(/^\| `((?:GET|POST|DELETE) [^`]+)` \|/gm),
    ([, route]) => route,
  )
  expect(rows.sort()).toEqual(await registered())
})

test('docs/http.md names error codes of the one table only', () => {
  const named = new Set(page.match(/FABRIC_[A-Z_]+/g))
  expect([...named].filter((code) => !Object.hasOwn(ERROR_KINDS, code))).toEqual([])
})

// The option table and what is made from it: precedence, refusals, reference pages, schema.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { unknownVariables } from '../../src/config/load.ts'
import { environmentOf, flagOf, OPTION_NAMES, OPTIONS } from '../../src/config/options.ts'
import { configReference, configSchema, errorReference, loadConfig } from '../../src/index.ts'
import { temporaryFolder } from '../support/broker.ts'

function yamlFile(content: string): string {
  const file = join(temporaryFolder(), 'fabric.yaml')
  writeFileSync(file, content)
  return file
}

describe('config: sources', () => {
  test('a flag wins over the environment, that over the file, that over the default', () => {
    const file = yamlFile('channelDepth: 3\nlaneIdleMs: 4\nretryDelayMs: 5\n')
    const environment = { FABRIC_CHANNEL_DEPTH: '6', FABRIC_LANE_IDLE_MS: '7' }
    const config = loadConfig({ file, environment, flags: { channelDepth: '8' } })
    expect(config).toMatchObject({
      channelDepth: 8,
      laneIdleMs: 7,
      retryDelayMs: 5,
      maxAttempts: 5,
    })
  })

  test('auto and null leave a nullable option to the broker', () => {
    const file = yamlFile('releaseThreshold: null\nactivationThreshold: auto\n')
    expect(loadConfig({ file })).toMatchObject({
      releaseThreshold: null,
      activationThreshold: null,
    })
    expect(loadConfig({ file, flags: { releaseThreshold: '9' } }).releaseThreshold).toBe(9)
    expect(loadConfig({ file, flags: { releaseThreshold: 'auto' } }).releaseThreshold).toBeNull()
  })

  test('lists and booleans are read from text', () => {
    const environment = { FABRIC_ALLOW_UIDS: '1000, 1001', FABRIC_DEBUGGABLE: 'yes' }
    expect(loadConfig({ environment })).toMatchObject({ allowUids: [1000, 1001], debuggable: true })
  })

  test('asPublished sets every plain behaviour, and an explicit option still wins', () => {
    expect(loadConfig({ flags: { asPublished: true, gateMaxHoldMs: 5 } })).toMatchObject({
      readyRule: 'batch-size',
      serve: 'first',
      gateMaxHoldMs: 5,
      gateOpensOn: 'threshold',
      cleanupIdleMs: 0,
      cleanupMerge: false,
    })
  })

  test('an empty file is a file', () => {
    expect(loadConfig({ file: yamlFile('') }).channelDepth).toBe(2)
  })
})

describe('config: refusals name the key and where it stands', () => {
  test.each([
    [
      'an unknown key',
      { file: 'leaseTimeout: 5\n' },
      'leaseTimeout',
      /did you mean leaseTimeoutMs/,
    ],
    ['a value below its range', { flags: { channelDepth: 0 } }, 'channelDepth', /--channel-depth/],
    ['text in place of a number', { flags: { maxAttempts: 'many' } }, 'maxAttempts', /"many"/],
    [
      'a choice that is none',
      { flags: { hugePages: 'yes' } },
      'hugePages',
      /try \| require \| off/,
    ],
    ['no power of two', { flags: { ringBytes: 5 * 2 ** 20 } }, 'ringBytes', /power of two/],
    [
      'a list that does not ascend',
      { flags: { lengthClasses: '128,64' } },
      'lengthClasses',
      /ascending/,
    ],
    ['a class of length 0', { flags: { lengthClasses: '0,64' } }, 'lengthClasses', /1 or more/],
    ['a list with a word', { flags: { allowUids: '1,root' } }, 'allowUids', /integers/],
    ['an address without a port', { flags: { http: 'localhost' } }, 'http', /host:port/],
    ['a bad variable', { environment: { FABRIC_SERVE: 'last' } }, 'serve', /FABRIC_SERVE/],
    ['a file that is a list', { file: '- a\n' }, 'config', /keys and values/],
    ['a file that is no YAML, in one line', { file: 'a: [' }, 'config', /yaml: .*column 5$/],
    [
      'aliases that explode',
      {
        file: 'a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n',
      },
      'config',
      /alias/,
    ],
    [
      'a number that is not exact, with the real maximum',
      { flags: { laneIdleMs: '9007199254740993' } },
      'laneIdleMs',
      /1 or more, at most 9007199254740991$/,
    ],
    ['a key with a letter missing', { file: 'chanelDepth: 3' }, 'chanelDepth', /mean channelDepth/],
    [
      'an item that fits no batch',
      { flags: { maxItemBytes: 2 ** 20, maxBatchBytes: 4096 } },
      'maxItemBytes',
      /maxBatchBytes/,
    ],
    [
      'a threshold that can never be reached',
      { flags: { releaseThreshold: 11, maxQueuedTokens: 10 } },
      'releaseThreshold',
      /maxQueuedTokens/,
    ],
  ])('%s', (_name, sources, field, message) => {
    const { file, ...rest } = sources as { file?: string }
    const load = () => loadConfig({ ...rest, ...(file ? { file: yamlFile(file) } : {}) })
    expect(load).toThrow(expect.objectContaining({ code: 'FABRIC_CONFIG_INVALID', field }))
    expect(load).toThrow(message)
  })

  test('a variable that nobody reads is warned of, with what it may have meant', () => {
    const environment = {
      FABRIC_RELEASE_TRESHOLD: '1',
      FABRIC_NOVEL: '1',
      FABRIC_CONFIG: 'x',
      FABRIC_LANE_IDLE_MS: '1',
      FABRIC_SERVICE_HOST: '10.0.0.1',
      FABRIC_PORT_7410_TCP: 'tcp://10.0.0.1:7410',
      PATH: '/bin',
    }
    expect(unknownVariables(environment)).toEqual([
      'no command reads the variable FABRIC_RELEASE_TRESHOLD (did you mean FABRIC_RELEASE_THRESHOLD?)',
      'no command reads the variable FABRIC_NOVEL',
    ])
  })

  test('a file that is missing', () => {
    expect(() => loadConfig({ file: '/nonexistent/fabric.yaml' })).toThrow(/cannot be read/)
  })
})

describe('config: documents', () => {
  test('names of flags and variables follow from the key', () => {
    expect(flagOf('releaseThreshold')).toBe('--release-threshold')
    expect(environmentOf('releaseThreshold')).toBe('FABRIC_RELEASE_THRESHOLD')
  })

  test('every default passes its own check', () => {
    for (const name of OPTION_NAMES) {
      const { check, fallback } = OPTIONS[name] as (typeof OPTIONS)['socket']
      expect(check(fallback), name).toEqual(fallback)
    }
  })

  test('the schema knows every option and nothing else', () => {
    const schema = configSchema() as { properties: object; additionalProperties: boolean }
    expect(Object.keys(schema.properties)).toEqual(OPTION_NAMES)
    expect(schema.additionalProperties).toBe(false)
  })

  test.each([
    ['config.md', configReference],
    ['errors.md', errorReference],
  ])(
    'docs/reference/%s is what the code says (regenerate: FABRIC_WRITE_REFERENCE=1 npm test -- packages/broker)',
    (name, make) => {
      const file = join(import.meta.dirname, '../../../../docs/reference', name)
      if (process.env.FABRIC_WRITE_REFERENCE !== undefined) writeFileSync(file, make())
      expect(readFileSync(file, 'utf8')).toBe(make())
    },
  )
})

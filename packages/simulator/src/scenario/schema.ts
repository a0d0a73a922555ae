// What a scenario file may hold (interfaces.md, Simulate). Unknown keys are refused, at every depth.
import { z } from 'zod'

const INT32_MAX = 2 ** 31 - 1
/** Times are integer nanoseconds in the simulation: beyond this they are not exact. */
const AT_US_MAX = Math.floor(Number.MAX_SAFE_INTEGER / 1000)

const positive = z.int().min(1).max(INT32_MAX)
const atUs = z.number().min(0).max(AT_US_MAX)
const model = z.int().min(0).max(INT32_MAX).default(1)
const name = z.string().min(1)

/** What a submission may say of its items beside their length. */
const settings = {
  job: name.optional(),
  maxWaitMs: positive.optional(),
  deadlineMs: positive.optional(),
  durable: z.boolean().optional(),
}

const item = z.strictObject({
  id: name.refine((id) => !/^m\d+$/.test(id), {
    error: 'm0, m1, … are the names of the items of submitMany and trace',
  }),
  model,
  length: positive,
  poison: z.boolean().optional(),
  ...settings,
})

/** What submitMany and trace have in common. */
const stream = {
  ...settings,
  onFull: z.enum(['wait', 'refuse']).optional(),
  /** Ends the input of the job when the last item is in, as a client does. */
  thenFlush: z.boolean().optional(),
}

const submitMany = z.strictObject({
  count: z.int().min(1).max(1e9),
  model,
  lengths: z.array(positive).min(1),
  everyUs: z.number().min(0).max(AT_US_MAX).default(0),
  ...stream,
})

const scriptEntry = z
  .strictObject({
    nth: z.int().min(1).optional(),
    item: name.optional(),
    do: z.enum(['fail', 'retry', 'nack', 'oom']),
  })
  .refine((entry) => (entry.nth === undefined) !== (entry.item === undefined), {
    error: 'names either nth or item',
  })

const consumer = z.strictObject({
  name,
  batchSize: positive,
  tokens: positive,
  inputLength: positive,
  model,
  layout: z.enum(['padded', 'ragged']).optional(),
  roundTo: z
    .int()
    .min(1)
    .max(64)
    .refine((value) => Number.isInteger(Math.log2(value)), { error: 'is no power of two' })
    .optional(),
  maxInFlight: z.int().min(1).max(64).optional(),
  service: z
    .strictObject({
      fixedUs: z.number().min(0).max(AT_US_MAX).default(0),
      perPaddedTokenNs: z.number().min(0).max(1e9).default(0),
    })
    .optional(),
  script: z.array(scriptEntry).default([]),
  respawnMs: z.int().min(0).optional(),
})

const ACTIONS = {
  submit: z.array(item).min(1),
  submitMany,
  trace: name,
  flush: z
    .strictObject({ job: name.optional(), model: z.int().min(0).max(INT32_MAX).optional() })
    .refine((flush) => flush.job === undefined || flush.model === undefined, {
      error: 'names a job or a model, not both',
    }),
  kill: name,
  stop: name,
  cont: name,
  drain: name,
  restart: z.strictObject({}),
  register: consumer,
  cancel: z.array(name).min(1),
  /** Jobs: their waiting items are not ready until they are resumed. */
  pause: name,
  resume: name,
  createJob: z.strictObject({
    name,
    weight: positive.optional(),
    maxWaitMs: z.int().min(0).max(INT32_MAX).optional(),
  }),
}

export type ActionName = keyof typeof ACTIONS
export const ACTION_NAMES = Object.keys(ACTIONS) as readonly ActionName[]
const STREAM_KEYS = Object.keys(stream) as readonly (keyof typeof stream)[]

const event = z
  .strictObject({ atUs, ...z.object(ACTIONS).partial().shape, ...stream })
  .check(({ value, issues }) => {
    const actions = ACTION_NAMES.filter((action) => value[action] !== undefined)
    const refuse = (message: string, path: string[] = []) =>
      issues.push({ code: 'custom', message, path, input: value })
    if (actions.length !== 1) {
      refuse(
        actions.length === 0
          ? `does nothing: it needs one of ${ACTION_NAMES.join(', ')}`
          : `does ${actions.length} things: ${actions.join(', ')}; make an event of each`,
      )
    }
    if (value.trace !== undefined || value.submitMany !== undefined) return
    for (const key of STREAM_KEYS) {
      if (value[key] !== undefined) refuse('stands only beside trace or submitMany', [key])
    }
  })

export const scenarioSchema = z.strictObject({
  config: z.record(z.string(), z.unknown()).default({}),
  consumers: z.array(consumer).default([]),
  events: z.array(event).default([]),
})

export type ScenarioData = z.infer<typeof scenarioSchema>
export type ConsumerData = z.infer<typeof consumer>
export type EventData = z.infer<typeof event>
export type ItemData = z.infer<typeof item>
export type ScriptEntry = z.infer<typeof scriptEntry>

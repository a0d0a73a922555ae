// A process that runs seeds of the core's simulation: gets ranges, answers each with its failures.
const { failureOf, ruleOf, told, workload } = await import(process.argv[2])
/** Of each rule the first failure is shrunk, which takes a while; the others are named. */
const shrunk = new Set()

process.on('message', ({ first, count }) => {
  const failures = []
  for (let seed = first; seed < first + count; seed++) {
    const failure = failureOf(workload(seed))
    if (failure === null) continue
    const rule = ruleOf(failure.message)
    const text = shrunk.has(rule) ? `seed ${seed}: ${failure.message}` : told(seed, failure)
    shrunk.add(rule)
    failures.push(text)
  }
  process.send({ count, failures })
})
process.send({ count: 0, failures: [] })

// Runs seeds of a bundled simulation until one fails: its last line is what failed, its exit code 1.
const { failureOf, workload } = await import(process.argv[2])

for (let seed = 1; seed <= Number(process.argv[3]); seed++) {
  const failure = failureOf(workload(seed))
  if (failure === null) continue
  process.stdout.write(`seed ${seed}: ${failure.message.split('\n')[0].slice(0, 160)}\n`)
  process.exit(1)
}

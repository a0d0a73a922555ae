// What passed and what failed, told as it happens; the last line of every run is the count.

export class Tally {
  passed = 0
  failed = 0

  /** @param {boolean} ok @param {string} what one line */
  count(ok, what) {
    if (ok) this.passed += 1
    else this.failed += 1
    process.stdout.write(`${ok ? 'ok    ' : 'FAILED'} ${what}\n`)
    return ok
  }

  /** Counts of a program that ends with the same line. */
  add(passed, failed, what) {
    this.passed += passed
    this.failed += failed
    process.stdout.write(
      `${failed === 0 ? 'ok    ' : 'FAILED'} ${what}: ${passed} of ${passed + failed}\n`,
    )
  }

  end() {
    process.stdout.write(`${this.passed} passed, ${this.failed} failed\n`)
    process.exitCode = this.failed === 0 && this.passed > 0 ? 0 : 1
  }
}

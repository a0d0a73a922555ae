// What all parts of the shadow say when something does not hold, and small arithmetic.

export function check(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(what)
}

export function checkEqual(found: number, expected: number, what: string): void {
  if (found !== expected) throw new Error(`${what} ${found}, not ${expected}`)
}

export function roundUp(length: number, multiple: number): number {
  return Math.ceil(length / multiple) * multiple
}

export function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0)
}

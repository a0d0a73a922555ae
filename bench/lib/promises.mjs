// Promises: rows of the targets table that a comparison can break.

/**
 * @typedef {{ promise: string, measured: number, bound: number, atLeast: boolean }} Checked
 * @param {string} promise @param {number} measured @param {number} bound
 * @returns {Checked}
 */
export const atLeast = (promise, measured, bound) => ({ promise, measured, bound, atLeast: true })

/** @param {string} promise @param {number} measured @param {number} bound @returns {Checked} */
export const atMost = (promise, measured, bound) => ({ promise, measured, bound, atLeast: false })

/** A figure that is missing breaks its promise. @param {Checked} checked */
export const holds = ({ measured, bound, atLeast: more }) =>
  more ? measured >= bound : measured <= bound

/** @param {Checked[]} promises */
export function promiseTable(promises) {
  return {
    title: 'Promises',
    head: ['promise', 'measured', 'bound', ''],
    rows: promises.map((checked) => [
      checked.promise,
      checked.measured.toFixed(3),
      `${checked.atLeast ? '>=' : '<='} ${checked.bound}`,
      holds(checked) ? 'holds' : 'BROKEN',
    ]),
  }
}

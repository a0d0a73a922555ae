// Medians and spread. A mean is never compared: one descheduled moment would decide it.

/** @param {readonly number[]} values */
export function summary(values) {
  const sorted = [...values].sort((a, b) => a - b)
  return {
    median: quantile(sorted, 0.5),
    p10: quantile(sorted, 0.1),
    p90: quantile(sorted, 0.9),
    p99: quantile(sorted, 0.99),
    min: sorted[0],
    max: sorted[sorted.length - 1],
    mean: sorted.reduce((sum, value) => sum + value, 0) / sorted.length,
    count: sorted.length,
  }
}

/** @param {readonly number[]} sorted ascending @param {number} share 0 to 1 */
function quantile(sorted, share) {
  const at = (sorted.length - 1) * share
  const below = Math.floor(at)
  const above = Math.min(below + 1, sorted.length - 1)
  return sorted[below] + (sorted[above] - sorted[below]) * (at - below)
}

/**
 * Two contestants that ran in the same rounds: the ratio of each round, for what disturbs a round
 * disturbs both.
 * @param {readonly number[]} ours @param {readonly number[]} theirs
 */
export function pairedRatio(ours, theirs) {
  return summary(ours.map((value, round) => value / theirs[round]))
}

// Contestants in turns within one run: every round runs each contestant once, and every round starts
// with another one, so that neither drift of the machine nor a neighbour's heat favours a place.

/**
 * @template T
 * @param {readonly { key: string, run: () => Promise<T> }[]} contestants
 * @param {number} rounds
 * @param {(line: string) => void} say
 * @returns {Promise<Map<string, T[]>>} by key, one value per round
 */
export async function inTurns(contestants, rounds, say) {
  const results = new Map(contestants.map(({ key }) => [key, []]))
  for (let round = 0; round < rounds; round++) {
    for (let place = 0; place < contestants.length; place++) {
      const { key, run } = contestants[(place + round) % contestants.length]
      results.get(key).push(await run())
    }
    say(`round ${round + 1} of ${rounds}`)
  }
  return results
}

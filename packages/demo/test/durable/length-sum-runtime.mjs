// A runtime that costs nothing: each item's result says its length and the sum of its tokens, so a
// result that is another item's is found.
export function createRuntime() {
  return {
    description: 'lengths and sums',
    layout: 'padded',
    async run(batch) {
      return Array.from(batch.lengths, (length, row) => {
        const from = row * batch.paddedLength
        let sum = 0
        for (let i = 0; i < length; i++) sum += batch.inputIds[from + i]
        return { length, sum }
      })
    },
    async close() {},
  }
}

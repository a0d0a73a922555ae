// Where a graph's weights come from: a safetensors file beside it, or a seed.
import type { Graph, Value } from './graph.js'
import { readSafetensorsHeader } from './safetensors.js'

/** Puts the weight `name` of the given shape into the graph; a second call gives the same value. */
export type Weights = (name: string, shape: readonly number[]) => Value

/** Weights by reference: the graph holds offsets into the file called `location` beside it. */
export function safetensorsWeights(graph: Graph, path: string, location: string): Weights {
  const stored = readSafetensorsHeader(path)
  return remembered((name, shape) => {
    const tensor = stored.get(name) ?? stored.get(`bert.${name}`)
    if (tensor === undefined) throw new Error(`${path} holds no float tensor ${name}`)
    if (tensor.shape.join() !== shape.join())
      throw new Error(
        `${path}: ${name} has shape ${tensor.shape.join(' x ')}, the configuration says ${shape.join(' x ')}`,
      )
    const { type, offset, byteLength } = tensor
    return graph.externalWeight(name, type, shape, { location, offset, byteLength })
  })
}

/** Weights drawn from a seed: the same seed gives the same graph, byte for byte, on any machine. */
export function randomWeights(graph: Graph, seed: number): Weights {
  const random = mulberry32(seed)
  return remembered((name, shape) => {
    const size = shape.reduce((product, n) => product * n, 1)
    // Variance 1 / inputs keeps activations near one; norms are near the identity.
    const isNormWeight = name.endsWith('LayerNorm.weight')
    const spread = shape.length === 1 ? 0.1 : Math.sqrt(3 / shape[shape.length - 1])
    const centre = isNormWeight ? 1 : 0
    const values = Float32Array.from({ length: size }, () => centre + spread * (2 * random() - 1))
    return graph.weight(name, shape, values)
  })
}

function remembered(make: Weights): Weights {
  const values = new Map<string, Value>()
  return (name, shape) => {
    const known = values.get(name)
    if (known !== undefined) return known
    const value = make(name, shape)
    values.set(name, value)
    return value
  }
}

/** Numbers in [0, 1): small, and the same everywhere (32-bit integer arithmetic only). */
function mulberry32(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

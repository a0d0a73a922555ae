// Contestants that promises speak of, by the name that stands in the tables.

export const RING = 'ring'
export const MEMCPY = 'memcpy, two processes'
export const UNIX = 'Unix socket'
export const ZEROMQ = 'ZeroMQ ipc'

// Two sides on one core, or on a core each: what a wake-up costs differs tenfold.
export const LOOP_ONE = 'ring, in the loop, one core'
export const UNIX_ONE = 'Unix socket, one core'
export const LOOP_EACH = 'ring, in the loop, a core each'
export const UNIX_EACH = 'Unix socket, a core each'
export const PIPE_EACH = 'C++, bare pipe, a core each'
export const SPIN_EACH = 'ring, spinning worker, a core each'

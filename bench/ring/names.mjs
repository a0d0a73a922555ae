// Contestants that promises speak of, by the name that stands in the tables.

export const RING = 'ring'
export const MEMCPY = 'memcpy, two processes'
export const UNIX = 'Unix socket'
export const ZEROMQ = 'ZeroMQ ipc'

export const LOOP = 'ring, in the loop'
export const SPIN = 'ring, spinning worker, a core each'
export const UNIX_PINNED = 'Unix socket, a core each'

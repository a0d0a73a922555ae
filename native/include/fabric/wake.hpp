// Wake-ups between the two processes: one byte in a pipe whose own end never blocks. A pipe and not
// an eventfd, because O_NONBLOCK belongs to the open file description: a peer that shares it could
// clear the flag and block us. The two ends of a pipe have flags of their own.
#pragma once

namespace fabric {

enum class Signal { Sent, AlreadyPending, PeerGone };
enum class Drain { Emptied, EndOfFile };

// Any thread. Never blocks as long as this process alone holds the write end's description.
// The process must ignore SIGPIPE (Node does).
Signal signal_pipe(int write_end);

// Takes at most 4 KiB, so that a peer that writes for ever cannot keep us here. Level-triggered
// polling reports what is left.
Drain drain_pipe(int read_end);

}  // namespace fabric

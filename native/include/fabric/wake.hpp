// Wake-ups between the two processes. For an event loop: one byte in a pipe whose own end never blocks. A pipe and not
// an eventfd, because O_NONBLOCK belongs to the open file description: a peer that shares it could
// clear the flag and block us. The two ends of a pipe have flags of their own.
#pragma once

#include <atomic>
#include <cstdint>

namespace fabric {

enum class Signal { Sent, AlreadyPending, PeerGone };
enum class Drain { Emptied, EndOfFile };

// Any thread. Never blocks as long as this process alone holds the write end's description.
// The process must ignore SIGPIPE (Node does).
Signal signal_pipe(int write_end);

// Takes at most 4 KiB, so that a peer that writes for ever cannot keep us here. Level-triggered
// polling reports what is left.
Drain drain_pipe(int read_end);

// An eventfd among the threads of this process, which no other process is ever given. -1 = no more
// descriptors.
int make_bell();
void ring_bell(int bell);
void hush_bell(int bell);

// Nobody has the write end any more.
bool is_hung_up(int read_end);

// Sleeps until futex_wake(), `timeout_ns` or for no reason at all, unless the word is no longer
// `seen`. The word may lie on a page that is mapped read-only, and in memory that processes share:
// so not the PRIVATE operation, whose sleeper another process's wake-up never finds.
void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t seen,
                std::int64_t timeout_ns);

// Wakes one sleeper, never all: a hostile process may have any number of threads on the word.
void futex_wake(const std::atomic<std::uint32_t>& word);

}  // namespace fabric

#include "fabric/wake.hpp"

#include <linux/futex.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

namespace fabric {

Signal signal_pipe(int write_end) {
  const char byte = 1;
  for (;;) {
    if (write(write_end, &byte, 1) == 1) return Signal::Sent;
    if (errno == EINTR) continue;
    // A full pipe already holds a wake-up that nobody has read.
    return errno == EAGAIN ? Signal::AlreadyPending : Signal::PeerGone;
  }
}

Drain drain_pipe(int read_end) {
  char bytes[4096];
  for (;;) {
    const ssize_t count = read(read_end, bytes, sizeof bytes);
    if (count > 0) return Drain::Emptied;
    if (count == 0) return Drain::EndOfFile;
    if (errno == EINTR) continue;
    return errno == EAGAIN ? Drain::Emptied : Drain::EndOfFile;
  }
}

int make_bell() { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

void ring_bell(int bell) {
  const std::uint64_t one = 1;
  // It fails only where the bell has been rung already, 2^64 times.
  if (write(bell, &one, sizeof one) < 0) return;
}

void hush_bell(int bell) {
  std::uint64_t times = 0;
  if (read(bell, &times, sizeof times) < 0) return;
}

bool is_hung_up(int read_end) {
  pollfd entry{read_end, 0, 0};
  return poll(&entry, 1, 0) == 1 && (entry.revents & POLLHUP) != 0;
}

void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t seen,
                std::int64_t timeout_ns) {
  const timespec timeout{static_cast<time_t>(timeout_ns / 1'000'000'000),
                         static_cast<long>(timeout_ns % 1'000'000'000)};
  // Why it returned does not matter: the caller looks again.
  (void)syscall(SYS_futex, &word, FUTEX_WAIT, seen, &timeout, nullptr, 0);
}

void futex_wake(const std::atomic<std::uint32_t>& word) {
  (void)syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

}  // namespace fabric

#include "fabric/fault_guard.hpp"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <mutex>

namespace fabric {

namespace {

// Read by a signal handler, so atomics and no lock. `start` is written last and cleared first.
struct Range {
  std::atomic<std::uintptr_t> start{0};
  std::atomic<std::size_t> bytes{0};
  std::atomic<std::uint64_t> ring_id{0};
};

// One for each attached ring of the process; more than a process attaches.
constexpr std::size_t kRangesMax = 256;
Range ranges[kRangesMax];
std::mutex ranges_mutex;  // among threads that register; never taken by the handler
struct sigaction previous;

// Only async-signal-safe calls here: no printf, no allocation.
std::size_t append_text(char* out, std::size_t at, const char* text) {
  while (*text) out[at++] = *text++;
  return at;
}

std::size_t append_hex(char* out, std::size_t at, std::uint64_t value, int digits) {
  for (int shift = (digits - 1) * 4; shift >= 0; shift -= 4) {
    out[at++] = "0123456789abcdef"[(value >> shift) & 0xf];
  }
  return at;
}

void say(std::uint64_t ring_id, std::uint64_t offset) {
  char line[192];
  std::size_t at = append_text(line, 0, "shm-ring: write into the read-only mapping of ring ");
  at = append_hex(line, at, ring_id, 16);
  at = append_text(line, at, " at offset 0x");
  at = append_hex(line, at, offset, 10);
  at = append_text(line, at, ": a batch is read in place, copy it before changing it\n");
  if (write(STDERR_FILENO, line, at) < 0) return;
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (const Range& range : ranges) {
    // acquire pairs with the release store in guard_readonly().
    const std::uintptr_t start = range.start.load(std::memory_order_acquire);
    const std::size_t bytes = range.bytes.load(std::memory_order_relaxed);
    if (start == 0 || address < start || address - start >= bytes) continue;
    say(range.ring_id.load(std::memory_order_relaxed), address - start);
    break;
  }
  if ((previous.sa_flags & SA_SIGINFO) && previous.sa_sigaction) {
    previous.sa_sigaction(signal, info, context);
  } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(signal);
  } else {
    // The same instruction runs again and ends the process with the signal itself.
    ::signal(signal, SIG_DFL);
  }
}

// A static and not std::call_once, which built here would need glibc 2.34.
void install_once() {
  [[maybe_unused]] static const int installed = [] {
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    return sigaction(SIGSEGV, &action, &previous);
  }();
}

}  // namespace

void guard_readonly(const void* start, std::size_t bytes, std::uint64_t ring_id) {
  install_once();
  const std::lock_guard lock(ranges_mutex);
  for (Range& range : ranges) {
    if (range.start.load(std::memory_order_relaxed) != 0) continue;
    range.bytes.store(bytes, std::memory_order_relaxed);
    range.ring_id.store(ring_id, std::memory_order_relaxed);
    // release: the handler sees length and ring of the start that it reads.
    range.start.store(reinterpret_cast<std::uintptr_t>(start), std::memory_order_release);
    return;
  }
}

void unguard_readonly(const void* start) {
  const std::lock_guard lock(ranges_mutex);
  for (Range& range : ranges) {
    if (range.start.load(std::memory_order_relaxed) == reinterpret_cast<std::uintptr_t>(start)) {
      range.start.store(0, std::memory_order_release);
    }
  }
}

}  // namespace fabric

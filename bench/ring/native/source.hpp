// What is written, the clock, and how a side waits for the other.
#pragma once

#include <sched.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <thread>
#include <vector>

#include "kernels.hpp"

namespace bench {

inline std::uint64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000ULL +
         static_cast<std::uint64_t>(time.tv_nsec);
}

// The calling thread, and what it starts from here on.
inline void pin(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  (void)sched_setaffinity(0, sizeof cores, &cores);  // a machine of one core has no other
}

// Spins, then gives the core away: with more threads than cores a spinner would wait for itself.
class Backoff {
 public:
  void pause() {
    if (++spins_ < 2000) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    } else {
      std::this_thread::yield();
    }
  }
  void reset() { spins_ = 0; }

 private:
  int spins_ = 0;
};

// Records lie one behind the other, cycled. Each one's sum is known beforehand, so that checking
// what arrived costs the writer no time.
class Source {
 public:
  static constexpr std::uint64_t kBytes = 64ULL << 20;

  explicit Source(std::uint64_t record_bytes)
      : record_bytes_(record_bytes), slots_(kBytes / record_bytes) {
    void* memory =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    (void)madvise(memory, kBytes, MADV_HUGEPAGE);
    bytes_ = static_cast<std::byte*>(memory);
    fill();
    for (std::uint64_t i = 0; i < slots_; i++) {
      sums_.push_back(sum_words<0>(at(i), record_bytes));
    }
  }

  const std::byte* at(std::uint64_t record) const {
    return bytes_ + record % slots_ * record_bytes_;
  }
  std::uint64_t sum(std::uint64_t record) const { return sums_[record % slots_]; }

 private:
  void fill() {
    auto* words = reinterpret_cast<std::uint64_t*>(bytes_);
    std::uint64_t state = 88172645463325252ULL;
    for (std::uint64_t i = 0; i < kBytes / 8; i++) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      words[i] = state;
    }
  }

  std::uint64_t record_bytes_;
  std::uint64_t slots_;
  std::byte* bytes_;
  std::vector<std::uint64_t> sums_;
};

}  // namespace bench

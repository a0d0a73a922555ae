// What the broker's side had done when it was killed, in memory that outlives it.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <new>

#include "reading.hpp"

namespace fabric::soak {

struct Ledger {
  std::atomic<std::uint64_t> begun[kWritersMax];      // commits that were called
  std::atomic<std::uint64_t> committed[kWritersMax];  // commits that returned
  std::atomic<std::uint64_t> read;                    // by the consumer that outlived the broker
  std::atomic<bool> killed_at_point;

  void clear() {
    for (auto& cell : begun) cell = 0;
    for (auto& cell : committed) cell = 0;
    read = 0;
    killed_at_point = false;
  }

  static Ledger* create() {
    void* page = mmap(nullptr, sizeof(Ledger), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                      -1, 0);
    return page == MAP_FAILED ? nullptr : new (page) Ledger{};
  }
};

}  // namespace fabric::soak

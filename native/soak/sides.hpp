// A broker and a consumer that go on until one of them is killed.
#pragma once

#include <cstdint>

#include "ledger.hpp"

namespace fabric::soak {

struct Side {
  int socket;
  std::uint64_t writers;
  std::uint64_t seed;
  const char* point;   // where this side kills itself, or nullptr
  std::uint64_t pass;  // at the nth time
  bool futex = false;  // the consumer sleeps on the futex and not on the pipe
};

// Returns only after the consumer died: 0 = the ring was sound and full to the end.
int broker_side(const Side& side, Ledger& ledger);
// Returns only after the broker died: 0 = every record that was committed came, whole and once.
int consumer_side(const Side& side, Ledger& ledger);

}  // namespace fabric::soak

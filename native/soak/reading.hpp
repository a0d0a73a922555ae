// The consumer's side of every long run: each record once, whole, in claim order per writer.
#pragma once

#include <cstdint>
#include <vector>

#include "fabric/ring_reader.hpp"

namespace fabric::soak {

inline constexpr std::size_t kWritersMax = 8;

class Reading {
 public:
  Reading(RingReader& ring, std::uint64_t seed) : ring_(ring), random_(seed | 1) {}

  // Reads what is there; holds some records and releases them out of order. False: a record is wrong.
  bool drain();
  void release_all();

  std::uint64_t records() const { return records_; }
  std::uint64_t bytes() const { return bytes_; }
  // How many of this writer came, which is also the number that comes next.
  std::uint64_t count(std::size_t writer) const { return next_[writer]; }

 private:
  bool check(const Record& record);
  void release_one();

  RingReader& ring_;
  std::uint64_t random_;
  std::uint64_t records_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t next_[kWritersMax] = {};
  std::vector<std::uint64_t> held_;
};

}  // namespace fabric::soak

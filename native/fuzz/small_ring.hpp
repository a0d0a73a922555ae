// A ring of 4 KiB in memory of its own: an access outside it is seen by AddressSanitizer.
#pragma once

#include <cstring>
#include <memory>
#include <new>

#include "fabric/layout.hpp"

namespace fabric::fuzz {

struct SmallRing {
  static constexpr std::uint64_t kCapacity = 4096;

  explicit SmallRing(std::uint64_t start) {
    // Not zeros: nothing may depend on what lies in fresh memory.
    std::memset(data, 0xa5, kCapacity);
    wctl.key = 0x9e3779b97f4a7c15;
    wctl.tail = start;
    rctl.read_position = start;
    rctl.taken_position = start;
  }
  ~SmallRing() { ::operator delete(data, std::align_val_t(64)); }
  SmallRing(const SmallRing&) = delete;
  SmallRing& operator=(const SmallRing&) = delete;

  std::byte* at(std::uint64_t position) const { return data + (position & (kCapacity - 1)); }

  std::byte* const data =
      static_cast<std::byte*>(::operator new(kCapacity, std::align_val_t(64)));
  WriterControl wctl{};
  ReaderControl rctl{};
};

}  // namespace fabric::fuzz

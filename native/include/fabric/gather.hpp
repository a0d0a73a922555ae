// Copies the rows of a batch one below the other. Every bound is checked before the first byte is
// written, so a bad argument leaves the target as it was.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace fabric {

struct GatherRows {
  std::span<std::byte> target;
  std::uint64_t target_offset;
  std::uint64_t row_stride;  // 0 = rows are packed without space between them
  std::uint64_t rows;
  std::span<const std::span<const std::byte>> sources;
  std::span<const std::uint32_t> source_index;
  std::span<const std::uint32_t> source_offset;
  std::span<const std::uint32_t> source_length;
};

// Empty = done, else what is out of range; then nothing was written. Any thread; sources may
// overlap the target.
std::string gather_rows(const GatherRows& job);

}  // namespace fabric

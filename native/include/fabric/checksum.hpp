// CRC-32 as of zlib (reflected polynomial 0xedb88320), with the processor's own instructions where it has
// them. The disk tier checks every item with it: zlib as Node has it takes several times as long, and
// a call from Node for each as long again.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace fabric {

// `crc` is that of the bytes before these, 0 where there are none.
std::uint32_t crc32(std::uint32_t crc, std::span<const std::byte> bytes);

struct Crc32Rows {
  std::span<const std::byte> source;
  std::span<const std::uint32_t> row_offset;
  std::span<const std::uint32_t> row_length;
  // Of each row: the CRC of what stands before it, which becomes that of it and the row.
  std::span<std::uint32_t> crcs;
  std::uint64_t rows;
};

// Empty = done, else what is out of range; then no CRC was changed.
std::string crc32_rows(const Crc32Rows& job);

namespace detail {

// One for each kind of processor, so that tests see all that this one can run.
using Crc32 = std::uint32_t (*)(std::uint32_t crc, const std::byte* bytes, std::size_t length);
std::uint32_t crc32_by_tables(std::uint32_t crc, const std::byte* bytes, std::size_t length);
// The fastest that this processor can run.
Crc32 fastest_crc32();

}  // namespace detail

}  // namespace fabric

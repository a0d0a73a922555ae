#include "fabric/checksum.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>
#include <string_view>
#include <vector>

using namespace fabric;

namespace {

using Bytes = std::vector<std::byte>;
using Words = std::vector<std::uint32_t>;

// By the definition, a bit at a time.
std::uint32_t by_bits(std::uint32_t crc, std::span<const std::byte> bytes) {
  crc = ~crc;
  for (const std::byte byte : bytes) {
    crc ^= static_cast<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; bit++) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320U : 0);
  }
  return ~crc;
}

Bytes drawn_bytes(std::mt19937& random, std::size_t length) {
  Bytes bytes(length);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() & 255);
  return bytes;
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

TEST(Checksum, OfTheCheckStringIsThatOfTheCatalogue) {
  EXPECT_EQ(fabric::crc32(0, bytes_of("123456789")), 0xcbf43926U);
  EXPECT_EQ(fabric::crc32(0, {}), 0U);
}

TEST(Checksum, IsTheDefinitionsForEachLengthAndPlaceInMemory) {
  std::mt19937 random(1);
  const Bytes memory = drawn_bytes(random, 700);
  for (std::size_t length = 0; length <= 600; length++) {
    const auto from = random() % 64;
    const auto before = static_cast<std::uint32_t>(random());
    const auto bytes = std::span(memory).subspan(from, length);
    const std::uint32_t expected = by_bits(before, bytes);
    EXPECT_EQ(fabric::crc32(before, bytes), expected) << length << " bytes at " << from;
    EXPECT_EQ(detail::crc32_by_tables(before, bytes.data(), length), expected) << length;
  }
}

TEST(Checksum, OfTwoPiecesIsThatOfTheWhole) {
  std::mt19937 random(2);
  const Bytes memory = drawn_bytes(random, 5000);
  for (int round = 0; round < 200; round++) {
    const auto cut = random() % memory.size();
    const auto first = fabric::crc32(0, std::span(memory).first(cut));
    EXPECT_EQ(fabric::crc32(first, std::span(memory).subspan(cut)), fabric::crc32(0, memory));
  }
}

TEST(Checksum, OfRowsGoesOnFromWhatStandsBeforeEach) {
  std::mt19937 random(3);
  const Bytes memory = drawn_bytes(random, 4096);
  Words crcs = {7, 0, 9};
  ASSERT_EQ(crc32_rows({memory, Words{0, 4096, 100}, Words{1024, 0, 3996}, crcs, 3}), "");
  EXPECT_EQ(crcs[0], by_bits(7, std::span(memory).first(1024)));
  EXPECT_EQ(crcs[1], 0U);
  EXPECT_EQ(crcs[2], by_bits(9, std::span(memory).subspan(100)));
}

TEST(Checksum, RefusesARowBeyondTheSourceAndChangesNothing) {
  constexpr std::uint32_t most = std::numeric_limits<std::uint32_t>::max();
  const Bytes memory(16);
  Words crcs = {1, 2};
  const auto run = [&](const Words& offset, const Words& length, std::uint64_t rows) {
    return crc32_rows({memory, offset, length, crcs, rows});
  };
  EXPECT_EQ(run({0, 9}, {16, 8}, 2), "row 1: bytes 9 to 17 of a source of 16");
  EXPECT_EQ(run({most}, {most}, 1), "row 0: bytes 4294967295 to 8589934590 of a source of 16");
  EXPECT_EQ(run({0, 0, 0}, {0, 0, 0}, 3), "rows is larger than the arrays that describe them");
  EXPECT_EQ(run({0}, {0, 0}, 2), "rows is larger than the arrays that describe them");
  EXPECT_EQ(crcs, (Words{1, 2}));
}

}  // namespace

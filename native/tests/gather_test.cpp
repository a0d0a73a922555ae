#include "fabric/gather.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

using namespace fabric;

namespace {

using Words = std::vector<std::uint32_t>;

class Gather : public testing::Test {
 protected:
  Gather() : target(64, std::byte{0xee}), first(16), second(8) {
    for (std::size_t i = 0; i < 16; i++) first[i] = static_cast<std::byte>(i + 1);
    for (std::size_t i = 0; i < 8; i++) second[i] = static_cast<std::byte>(i + 101);
    sources = {first, second};
  }
  std::string run(std::uint64_t offset, std::uint64_t stride, std::uint64_t rows,
                  const Words& index, const Words& from, const Words& length) {
    return gather_rows({target, offset, stride, rows, sources, index, from, length});
  }
  void expect_refused(const std::string& why, std::uint64_t offset, std::uint64_t stride,
                      std::uint64_t rows, const Words& index, const Words& from,
                      const Words& length) {
    EXPECT_EQ(run(offset, stride, rows, index, from, length), why);
    for (const std::byte byte : target) ASSERT_EQ(byte, std::byte{0xee});
  }
  int at(std::size_t offset) const { return static_cast<int>(target[offset]); }

  std::vector<std::byte> target;
  std::vector<std::byte> first;
  std::vector<std::byte> second;
  std::vector<std::span<const std::byte>> sources;
};

constexpr std::uint32_t kMax = std::numeric_limits<std::uint32_t>::max();

TEST_F(Gather, PutsRowsBelowEachOtherAndFillsWithZeros) {
  EXPECT_EQ(run(4, 8, 2, {0, 1}, {2, 0}, {3, 8}), "");
  EXPECT_EQ(at(3), 0xee);
  EXPECT_EQ(at(4), 3);
  EXPECT_EQ(at(6), 5);
  for (std::size_t i = 7; i < 12; i++) EXPECT_EQ(at(i), 0);
  EXPECT_EQ(at(12), 101);
  EXPECT_EQ(at(19), 108);
  EXPECT_EQ(at(20), 0xee);
}

TEST_F(Gather, PacksRowsWithoutSpace) {
  EXPECT_EQ(run(0, 0, 3, {1, 0, 1}, {0, 0, 6}, {2, 0, 2}), "");
  EXPECT_EQ(at(0), 101);
  EXPECT_EQ(at(1), 102);
  EXPECT_EQ(at(2), 107);
  EXPECT_EQ(at(3), 108);
  EXPECT_EQ(at(4), 0xee);
}

TEST_F(Gather, FillsTheTargetToItsLastByte) {
  EXPECT_EQ(run(48, 16, 1, {0}, {0}, {16}), "");
  EXPECT_EQ(at(63), 16);
  EXPECT_EQ(run(64, 16, 0, {}, {}, {}), "");
}

TEST_F(Gather, WritesNothingIfAnyRowIsWrong) {
  expect_refused("row 1: there is no source 2", 0, 8, 2, {0, 2}, {0, 0}, {1, 1});
  expect_refused("row 1: bytes 9 to 17 of a source of 16", 0, 8, 2, {0, 0}, {0, 9}, {1, 8});
  expect_refused("row 0: 9 bytes in a row of 8", 0, 8, 2, {0, 0}, {0, 0}, {9, 1});
  expect_refused("row 1: bytes 4294967295 to 8589934590 of a source of 8", 0, 0, 2, {0, 1},
                 {0, kMax}, {1, kMax});
}

TEST_F(Gather, WritesNothingIfTheTargetIsTooSmall) {
  expect_refused("the rows do not fit in the target", 60, 8, 1, {0}, {0}, {1});
  expect_refused("the rows do not fit in the target", 0, 8, 9, Words(9), Words(9), Words(9));
  expect_refused("the rows do not fit in the target", 60, 0, 1, {0}, {0}, {5});
  expect_refused("targetByteOffset is past the target's end", 65, 8, 0, {}, {}, {});
  // rows times stride is 2^64
  expect_refused("the rows do not fit in the target", 0, 1ULL << 60, 16, Words(16), Words(16),
                 Words(16));
}

TEST_F(Gather, WritesNothingIfTheArraysAreTooShort) {
  const std::string why = "rows is larger than the arrays that describe them";
  expect_refused(why, 0, 8, 2, {0}, {0, 0}, {1, 1});
  expect_refused(why, 0, 8, 2, {0, 0}, {0}, {1, 1});
  expect_refused(why, 0, 8, 2, {0, 0}, {0, 0}, {1});
  expect_refused(why, 0, 0, 1ULL << 53, {0}, {0}, {1});
}

TEST_F(Gather, CopiesWithinTheTargetItself) {
  for (std::size_t i = 0; i < 16; i++) target[i] = static_cast<std::byte>(i);
  sources = {target};
  EXPECT_EQ(run(4, 0, 1, {0}, {0}, {12}), "");
  for (std::size_t i = 0; i < 12; i++) EXPECT_EQ(at(i + 4), static_cast<int>(i));
}

}  // namespace

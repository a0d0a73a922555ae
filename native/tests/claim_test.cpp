#include <cstdint>
#include <limits>

#include "ring_fixture.hpp"

using namespace fabric;
using fabric::test::Ring;

namespace {

constexpr std::uint64_t kCapacity = 4096;  // records up to 512 bytes

TEST(Claim, StartsAtACacheLineAndWritesABusyHeader) {
  Ring ring(kCapacity);
  Claim claim = ring.claim(100);
  EXPECT_EQ(claim.position(), 0u);
  EXPECT_EQ(claim.end(), 192u);  // 64 + 100, rounded up
  EXPECT_EQ(claim.payload(), ring.data + 64);
  EXPECT_TRUE(ring.is(0, State::Busy));
  EXPECT_EQ(ring.header(0).record_length, 192u);
  EXPECT_EQ(ring.header(0).payload_length, 100u);
}

TEST(Claim, TakesAnEmptyPayload) {
  Ring ring(kCapacity);
  EXPECT_EQ(ring.claim(0).end(), 64u);
}

TEST(Claim, RefusesMoreThanAnEighthOfTheRingWhateverTheLength) {
  Ring ring(kCapacity);
  EXPECT_EQ(ring.writer->max_payload_bytes(), 448u);
  (void)ring.claim(448);
  const std::uint64_t too_large[] = {449,
                                     512,
                                     kCapacity,
                                     1ULL << 31,
                                     (1ULL << 32) - 64,
                                     1ULL << 32,
                                     std::numeric_limits<std::uint64_t>::max() - 64,
                                     std::numeric_limits<std::uint64_t>::max()};
  for (const std::uint64_t length : too_large) {
    EXPECT_EQ(ring.refusal(length), Refusal::TooLarge) << length;
  }
  EXPECT_EQ(ring.wctl->tail, 512u);
}

TEST(Claim, NeverHandsOutTheGuardLine) {
  Ring ring(kCapacity);
  for (int i = 0; i < 63; i++) ring.put(1);
  EXPECT_TRUE(ring.is_full(0));
  EXPECT_EQ(ring.wctl->tail, kCapacity - kGuardBytes);
  ring.read_and_release();
  ring.put(1);
  EXPECT_TRUE(ring.is_full(0));
}

TEST(Claim, SaysFullWithTheReadPositionThatLeftNoRoom) {
  Ring ring(kCapacity);
  for (int i = 0; i < 63; i++) ring.put(1);
  ring.read_and_release();
  ring.put(1);
  const ClaimResult result = ring.writer->claim(0);
  EXPECT_EQ(std::get<Refused>(result).read_position, 64u);
  EXPECT_EQ(ring.writer->stat().fulls, 1u);
}

TEST(Claim, LeavesMemoryUntouchedWhenFull) {
  Ring ring(kCapacity);
  for (int i = 0; i < 63; i++) ring.put(1);
  std::vector<std::byte> before(ring.data, ring.data + kCapacity);
  EXPECT_TRUE(ring.is_full(0));
  EXPECT_TRUE(ring.is_full(64));
  EXPECT_EQ(std::memcmp(before.data(), ring.data, kCapacity), 0);
}

// Every remainder before the end, and every record length against it.
TEST(Claim, LeavesAReadableGapForEveryRemainderAtTheEnd) {
  for (std::uint64_t remainder = 1; remainder <= 64; remainder++) {
    for (std::uint64_t lines = 1; lines <= 8; lines++) {
      const std::uint64_t start = kCapacity - remainder * 64;
      Ring ring(kCapacity, start);
      const std::uint64_t position = ring.put(lines, 7);
      if (lines > remainder) {
        EXPECT_EQ(ring.offset(position), 0u);
        EXPECT_TRUE(ring.is(start, State::Pad));
        EXPECT_EQ(ring.header(start).record_length, remainder * 64);
        EXPECT_EQ(ring.writer->stat().gap_bytes, remainder * 64);
      } else {
        EXPECT_EQ(position, start);
        EXPECT_EQ(ring.writer->stat().pads, 0u);
      }
      EXPECT_EQ(ring.read().batch_sequence, 7u);
      EXPECT_TRUE(ring.reader->release(position));
      EXPECT_EQ(ring.rctl->read_position, ring.wctl->tail);
      EXPECT_EQ(ring.writer->stat().used_bytes, 0u);
    }
  }
}

TEST(Claim, CountsTheGapInTheRoomThatARecordNeeds) {
  // Two lines before the end, records of 4 lines: 2 + 4 lines are needed.
  const std::uint64_t start = kCapacity - 2 * 64;
  Ring ring(kCapacity, start - 60 * 64);
  for (int i = 0; i < 60; i++) ring.put(1);
  ASSERT_EQ(ring.wctl->tail, start);
  // 3 lines are free but for the guard: the gap fits, gap and record don't.
  EXPECT_TRUE(ring.is_full(3 * 64));
  EXPECT_EQ(ring.wctl->tail, kCapacity) << "the gap alone is given up";
  EXPECT_TRUE(ring.is(start, State::Pad));
  EXPECT_TRUE(ring.is_full(3 * 64));
  for (int i = 0; i < 3; i++) ring.read_and_release();
  EXPECT_EQ(ring.put(4), kCapacity);
}

TEST(Claim, GivesUpTheGapOnlyOnce) {
  const std::uint64_t start = kCapacity - 2 * 64;
  Ring ring(kCapacity, start - 60 * 64);
  for (int i = 0; i < 60; i++) ring.put(1);
  for (int i = 0; i < 5; i++) EXPECT_TRUE(ring.is_full(3 * 64));
  EXPECT_EQ(ring.writer->stat().pads, 1u);
}

TEST(Claim, DoesNotGiveUpAGapThatReachesTheGuard) {
  const std::uint64_t start = kCapacity - 2 * 64;
  Ring ring(kCapacity, start - 62 * 64);
  for (int i = 0; i < 62; i++) ring.put(1);
  EXPECT_TRUE(ring.is_full(3 * 64));
  EXPECT_EQ(ring.wctl->tail, start);
}

TEST(Claim, LooksAgainAtTheReaderBeforeItSaysFull) {
  Ring ring(kCapacity);
  for (int i = 0; i < 63; i++) ring.put(1);
  for (int i = 0; i < 63; i++) ring.read_and_release();
  EXPECT_EQ(ring.put(8), 63u * 64 + 64) << "one line of gap, then the front";
}

TEST(Claim, RunsAcrossPositionsThatBreakNarrowArithmetic) {
  const std::uint64_t edges[] = {1ULL << 31, 1ULL << 32, 1ULL << 53, 1ULL << 63, 0};
  for (const std::uint64_t edge : edges) {
    for (std::uint64_t before = 1; before <= 9; before++) {
      Ring ring(kCapacity, edge - before * 64);
      for (std::uint64_t i = 0; i < 200; i++) {
        const std::uint64_t lines = 1 + i % 8;
        ring.put(lines, i);
        if (i % 3 == 2) continue;  // let it fill a little
        EXPECT_EQ(ring.writer->stat().poisoned, false);
        while (true) {
          const NextResult result = ring.reader->next();
          if (!std::holds_alternative<Record>(result)) break;
          ring.reader->release(std::get<Record>(result).position);
        }
      }
      EXPECT_LE(ring.writer->stat().used_bytes, kCapacity);
    }
  }
}

TEST(Claim, RefusesAfterClose) {
  Ring ring(kCapacity);
  Claim open = ring.claim(0);
  ring.writer->close();
  EXPECT_EQ(ring.refusal(0), Refusal::Closed);
  open.commit(3);
  EXPECT_EQ(ring.read().batch_sequence, 3u);
}

}  // namespace

#include "ring_fixture.hpp"

using namespace fabric;
using fabric::test::Ring;

namespace {

constexpr std::uint64_t kCapacity = 4096;

TEST(Settle, ShowsARecordOnlyWhenAllBeforeItAreSettled) {
  Ring ring(kCapacity);
  Claim first = ring.claim(64);
  Claim second = ring.claim(64);
  Claim third = ring.claim(64);
  third.commit(3);
  EXPECT_TRUE(ring.nothing());
  first.commit(1);
  EXPECT_EQ(ring.read().batch_sequence, 1u);
  EXPECT_TRUE(ring.nothing());
  second.commit(2);
  EXPECT_EQ(ring.read().batch_sequence, 2u);
  EXPECT_EQ(ring.read().batch_sequence, 3u);
}

TEST(Settle, PassesOverAnAbortedRecord) {
  Ring ring(kCapacity);
  Claim first = ring.claim(64);
  Claim second = ring.claim(64);
  second.commit(2);
  first.abort();
  EXPECT_EQ(ring.read().batch_sequence, 2u);
  EXPECT_EQ(ring.writer->stat().aborts, 1u);
}

TEST(Settle, AbortsAClaimThatGoesOutOfScope) {
  Ring ring(kCapacity);
  { const Claim forgotten = ring.claim(64); }
  EXPECT_TRUE(ring.is(0, State::Pad));
  ring.put(1, 9);
  EXPECT_EQ(ring.read().batch_sequence, 9u);
}

TEST(Settle, SettlesAMovedClaimOnce) {
  Ring ring(kCapacity);
  Claim first = ring.claim(64);
  Claim second = std::move(first);
  first.abort();
  EXPECT_TRUE(ring.is(0, State::Busy));
  second.commit(1);
  second.abort();
  EXPECT_TRUE(ring.is(0, State::Committed));
  EXPECT_EQ(ring.writer->stat().aborts, 0u);
}

TEST(Settle, AbortsWhatAnAssignmentReplaces) {
  Ring ring(kCapacity);
  Claim claim = ring.claim(64);
  claim = ring.claim(64);
  EXPECT_TRUE(ring.is(0, State::Pad));
  EXPECT_TRUE(ring.is(128, State::Busy));
}

TEST(Settle, GivesBackTheSpaceOfAbortedRecordsWithoutAnyCommit) {
  Ring ring(kCapacity);
  for (int round = 0; round < 500; round++) {
    ring.claim(64).abort();
    EXPECT_TRUE(ring.nothing());
  }
  EXPECT_EQ(ring.rctl->read_position, ring.wctl->tail);
}

TEST(Settle, TellsWhatTheReaderHasTaken) {
  Ring ring(kCapacity);
  const std::uint64_t first_end = ring.put(1) + 64;
  const std::uint64_t second_end = ring.put(1) + 64;
  const Record first = ring.read();
  const Record second = ring.read();
  EXPECT_FALSE(ring.writer->taken(first_end));
  ring.reader->take(second.position);
  EXPECT_FALSE(ring.writer->taken(second_end)) << "only with all before it";
  ring.reader->take(first.position);
  EXPECT_TRUE(ring.writer->taken(first_end));
  EXPECT_TRUE(ring.writer->taken(second_end));
  EXPECT_EQ(ring.rctl->read_position, 0u) << "taken is not released";
}

TEST(Settle, CountsAReleasedRecordAsTaken) {
  Ring ring(kCapacity);
  const std::uint64_t end = ring.put(2) + 128;
  ring.read_and_release();
  EXPECT_TRUE(ring.writer->taken(end));
}

TEST(Settle, CountsARecordBehindAnAbortedOneAsTaken) {
  Ring ring(kCapacity);
  ring.claim(64).abort();
  const std::uint64_t end = ring.put(2) + 128;
  ring.reader->take(ring.read().position);
  EXPECT_TRUE(ring.writer->taken(end));
}

}  // namespace

// The consumer's page holds whatever a hostile process wrote there.
#include "ring_fixture.hpp"

using namespace fabric;
using fabric::test::Ring;

namespace {

constexpr std::uint64_t kCapacity = 4096;

// Full with records, so that the next claim must look at the read position.
void fill(Ring& ring) {
  for (int i = 0; i < 63; i++) ring.put(1);
}

class HostileReadPosition : public testing::TestWithParam<std::uint64_t> {};

TEST_P(HostileReadPosition, PoisonsTheRingAndFreesNothing) {
  Ring ring(kCapacity, 8192);
  fill(ring);
  std::vector<std::byte> before(ring.data, ring.data + kCapacity);
  ring.rctl->read_position = 8192 + GetParam();
  EXPECT_EQ(ring.refusal(0), Refusal::Poisoned);
  EXPECT_TRUE(ring.writer->poisoned());
  EXPECT_EQ(ring.wctl->state, RingState::Poisoned);
  EXPECT_EQ(std::memcmp(before.data(), ring.data, kCapacity), 0);
  // For good: a later honest value does not heal it.
  ring.rctl->read_position = 8192 + 64;
  EXPECT_EQ(ring.refusal(0), Refusal::Poisoned);
  EXPECT_TRUE(ring.writer->stat().poisoned);
}

INSTANTIATE_TEST_SUITE_P(Values, HostileReadPosition,
                         testing::Values(1, 8, 63, 65,             // not aligned
                                         -64ULL, -8192ULL,         // backwards
                                         64ULL * 64, 1ULL << 32,   // past what was committed
                                         1ULL << 63, -1ULL));

TEST(Hostile, PoisonsAReadPositionThatGoesBackBehindAnAcceptedOne) {
  Ring ring(kCapacity);
  fill(ring);
  ring.rctl->read_position = 10 * 64;
  for (int i = 0; i < 10; i++) ring.put(1);
  ring.rctl->read_position = 9 * 64;
  EXPECT_EQ(ring.refusal(0), Refusal::Poisoned);
}

TEST(Hostile, PoisonsAReadPositionBeyondARecordThatIsStillBeingWritten) {
  Ring ring(kCapacity);
  ring.put(1);
  Claim writing = ring.claim(64);
  for (int i = 0; i < 60; i++) ring.put(1);
  ring.rctl->read_position = ring.wctl->tail.load();
  EXPECT_EQ(ring.refusal(0), Refusal::Poisoned);
  writing.commit(1);  // still safe
}

TEST(Hostile, AcceptsAReadPositionUpToWhatWasCommitted) {
  Ring ring(kCapacity);
  fill(ring);
  ring.rctl->read_position = ring.wctl->tail.load();
  ring.put(8);
  EXPECT_FALSE(ring.writer->poisoned());
}

TEST(Hostile, PoisonsAnImpossibleTakenPosition) {
  for (const std::uint64_t lie : {64ULL * 3, 32ULL, -64ULL, 1ULL << 63}) {
    Ring ring(kCapacity);
    const std::uint64_t end = ring.put(1) + 64;
    ring.put(1);
    ring.rctl->taken_position = lie;
    EXPECT_FALSE(ring.writer->taken(end)) << lie;
    EXPECT_TRUE(ring.writer->poisoned());
  }
}

TEST(Hostile, KeepsWhatWasTakenBeforeTheLie) {
  Ring ring(kCapacity);
  const std::uint64_t end = ring.put(1) + 64;
  ring.rctl->taken_position = end;
  EXPECT_TRUE(ring.writer->taken(end));
  ring.rctl->taken_position = 1;
  EXPECT_TRUE(ring.writer->taken(end));
  EXPECT_FALSE(ring.writer->taken(end + 64));
}

TEST(Hostile, StaysInBoundsForAnyReadPosition) {
  std::uint64_t random = 42;
  for (int round = 0; round < 2000; round++) {
    Ring ring(kCapacity);
    for (int i = 0; i < 100; i++) {
      random = random * 6364136223846793005ULL + 1442695040888963407ULL;
      ring.rctl->read_position = (random >> 60) < 12 ? (random >> 32) % 128 * 64 : random;
      ClaimResult result = ring.writer->claim(random % 448);
      if (auto* claim = std::get_if<Claim>(&result)) {
        ASSERT_LE(ring.offset(claim->position()) + (claim->end() - claim->position()), kCapacity);
        std::memset(claim->payload(), 0xff, claim->payload_bytes());
        claim->commit(1);
      }
      ASSERT_LE(ring.writer->stat().used_bytes, kCapacity);
    }
  }
}

}  // namespace

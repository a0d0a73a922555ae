// One thread is stopped between two accesses while another does something: played in one thread, by
// doing the other's work inside the hook, so each case is exact and repeatable.
#include <functional>
#include <string>

#include "fabric/test_point.hpp"
#include "ring_fixture.hpp"

using namespace fabric;
using fabric::test::Ring;

namespace {

constexpr std::uint64_t kCapacity = 4096;

std::string wanted_point;
std::function<void()> meanwhile;

class Interleaving : public testing::Test {
 protected:
  // Once, the first time that `point` is passed.
  void at(const std::string& point, std::function<void()> work) {
    wanted_point = point;
    meanwhile = std::move(work);
    test_point_hook = [](const char* name) {
      if (!meanwhile || wanted_point != name) return;
      std::exchange(meanwhile, nullptr)();
    };
  }
  void TearDown() override {
    EXPECT_FALSE(meanwhile) << "never passed " << wanted_point;
    meanwhile = nullptr;
    test_point_hook = nullptr;
  }
};

TEST_F(Interleaving, ALostExchangeComputesItsGapAnew) {
  Ring ring(kCapacity, kCapacity - 128);
  at("claim.before_exchange", [&] { ring.put(2, 1); });
  EXPECT_EQ(ring.put(4, 2), kCapacity) << "the gap of two lines is gone";
  EXPECT_EQ(ring.writer->stat().pads, 0u);
  EXPECT_EQ(ring.writer->stat().claim_retries, 1u);
  EXPECT_EQ(ring.read().batch_sequence, 1u);
  EXPECT_EQ(ring.read().batch_sequence, 2u);
}

TEST_F(Interleaving, ALostGapIsNotGivenUpTwice) {
  Ring ring(kCapacity, kCapacity - 128 - 60 * 64);
  for (int i = 0; i < 60; i++) ring.put(1);
  at("gap.before_exchange", [&] { ring.put(2, 5); });
  EXPECT_TRUE(ring.is_full(3 * 64));
  EXPECT_EQ(ring.writer->stat().pads, 0u);
  EXPECT_EQ(ring.wctl->tail, kCapacity);
}

TEST_F(Interleaving, SpaceFreedWhileLookingIsNotMissed) {
  Ring ring(kCapacity);
  for (int i = 0; i < 63; i++) ring.put(1);
  at("claim.head_loaded", [&] { ring.read_and_release(); });
  ring.put(1);
  EXPECT_EQ(ring.writer->stat().fulls, 0u);
}

TEST_F(Interleaving, FullIsNotAnsweredAboutATailThatHasMoved) {
  Ring ring(kCapacity, kCapacity - 128 - 62 * 64);
  for (int i = 0; i < 62; i++) ring.put(1);
  at("full.before_answer", [&] {
    for (int i = 0; i < 62; i++) ring.read_and_release();
    ring.put(2);
  });
  EXPECT_EQ(ring.put(4), kCapacity);
  EXPECT_EQ(ring.writer->stat().fulls, 0u);
}

TEST_F(Interleaving, AHeadThatIsALapOldDoesNotWrapTheDifference) {
  Ring ring(kCapacity);
  at("claim.head_loaded", [&] {
    for (int i = 0; i < 200; i++) {
      ring.put(1);
      ring.read_and_release();
    }
    (void)ring.writer->stat();  // another thread has accepted the read position
  });
  EXPECT_EQ(ring.put(1, 9), 200u * 64);
  EXPECT_EQ(ring.read().batch_sequence, 9u);
  EXPECT_FALSE(ring.writer->poisoned());
}

TEST_F(Interleaving, ANewerAcceptedReadPositionPoisonsNobody) {
  for (const char* point : {"head.accepted_loaded", "head.read_loaded"}) {
    Ring ring(kCapacity);
    for (int i = 0; i < 63; i++) ring.put(1);
    for (int i = 0; i < 3; i++) ring.read_and_release();
    at(point, [&] {
      for (int i = 0; i < 10; i++) ring.read_and_release();
      (void)ring.writer->stat();
    });
    ring.put(1);
    EXPECT_FALSE(ring.writer->poisoned()) << point;
    EXPECT_EQ(ring.writer->stat().used_bytes, 51u * 64);
  }
}

TEST_F(Interleaving, AReaderMayOvertakeTheWriterThatJustCommitted) {
  Ring ring(kCapacity);
  for (int i = 0; i < 62; i++) ring.put(1);
  Claim last = ring.claim(0);
  at("settle.exchanged", [&] {
    for (int i = 0; i < 63; i++) ring.read_and_release();
    ring.put(8);
  });
  last.commit(1);
  EXPECT_FALSE(ring.writer->poisoned());
  EXPECT_EQ(ring.writer->stat().used_bytes, 9u * 64) << "a gap of one line and the record";
}

TEST_F(Interleaving, AStaleLookNeverMovesWhatIsCommitted) {
  Ring ring(kCapacity);
  Claim first = ring.claim(64);
  at("committed.looked", [&] {
    // Two laps, with a payload over the very bytes that the other thread has just looked at.
    for (int i = 0; i < 2 * 64; i++) {
      while (!ring.nothing()) {
      }
      Claim claim = ring.claim(448);
      std::memset(claim.payload(), 0xff, 448);
      claim.commit(1);
      const Record record = ring.read();
      ring.reader->release(0);
      ring.reader->release(record.position);
    }
  });
  first.commit(1);
  EXPECT_FALSE(ring.writer->poisoned());
  EXPECT_EQ(ring.writer->stat().used_bytes, 0u);
}

TEST_F(Interleaving, ACommitBetweenDrainAndSleepIsFound) {
  Ring ring(kCapacity);
  at("next.waiting_set", [&] { ring.put(1, 4); });
  EXPECT_EQ(ring.read().batch_sequence, 4u);
}

TEST_F(Interleaving, AReleaseBetweenFullAndWaitIsFound) {
  Ring ring(kCapacity);
  for (int i = 0; i < 63; i++) ring.put(1);
  EXPECT_TRUE(ring.is_full(0));
  at("space.armed", [&] { ring.read_and_release(); });
  EXPECT_FALSE(ring.writer->arm_space(0));
}

TEST_F(Interleaving, ASignalForAReleaseThatWasSeenAlreadyUsesUpOneWaitOnly) {
  Ring ring(kCapacity);
  for (int i = 0; i < 63; i++) ring.put(1);
  // Between the reader's store of its position and its look for waiting writers.
  at("release.stored", [&] {
    ring.put(1);
    EXPECT_TRUE(ring.is_full(0));
    EXPECT_TRUE(ring.writer->arm_space(64));
  });
  ring.read_and_release();
  EXPECT_EQ(ring.reader->space_signals(), 1u);
  EXPECT_TRUE(ring.writer->arm_space(64)) << "woken for nothing: waits again";
  ring.read_and_release();
  EXPECT_EQ(ring.reader->space_signals(), 2u);
}

TEST_F(Interleaving, ASignalTakenByAnotherWriterIsSentOnce) {
  Ring ring(kCapacity);
  EXPECT_TRUE(ring.nothing());
  at("wake.waiting_seen", [&] { ring.put(1); });
  ring.put(1);
  EXPECT_EQ(ring.writer->stat().wakeups, 1u);
}

}  // namespace

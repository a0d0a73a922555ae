// When a reader that found nothing stays a moment.
#include "fabric/linger.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "ring_fixture.hpp"

using namespace fabric;
using fabric::test::Ring;

namespace {

// How many times it is refused before the next chance.
int refused(Linger& linger) {
  int times = 0;
  while (!linger.worth_it()) times++;
  return times;
}

TEST(Linger, TriesAtOnceAndAfterEachMissInARowHalfAsOften) {
  Linger linger;
  std::vector<int> gaps;
  for (int i = 0; i < 9; i++) {
    gaps.push_back(refused(linger));
    linger.missed();
  }
  EXPECT_EQ(gaps, (std::vector<int>{0, 1, 3, 7, 15, 31, 63, 63, 63}));
}

TEST(Linger, StaysEachTimeAsSoonAsItPaidOnce) {
  Linger linger;
  for (int i = 0; i < 5; i++) {
    (void)refused(linger);
    linger.missed();
  }
  EXPECT_EQ(refused(linger), 31);
  linger.paid();
  EXPECT_EQ(refused(linger), 0);
  linger.paid();
  EXPECT_EQ(refused(linger), 0);
  linger.missed();
  EXPECT_EQ(refused(linger), 1);
}

TEST(Linger, LeavesTheWaitingFlagAloneSoThatTheWriterSendsNothing) {
  Ring ring(4096);
  ring.reader->linger();
  EXPECT_EQ(ring.rctl->waiting, kAwake);
  ring.put(1);
  ring.reader->linger();
  EXPECT_EQ(ring.writer->stat().wakeups, 0u);
  ring.read_and_release();
}

TEST(Linger, LosesNoRecordOfAWriterThatRunsBesideIt) {
  constexpr int records = 2000;
  Ring ring(4096);
  std::thread writer([&] {
    for (std::uint64_t i = 0; i < records;) {
      ClaimResult result = ring.writer->claim(8);
      if (auto* claim = std::get_if<Claim>(&result)) {
        claim->commit(i++);
      } else {
        std::this_thread::yield();
      }
    }
  });
  for (std::uint64_t expected = 0; expected < records;) {
    ring.reader->linger();
    const NextResult result = ring.reader->next();
    const auto* record = std::get_if<Record>(&result);
    if (!record) continue;
    EXPECT_EQ(record->batch_sequence, expected++);
    ring.reader->release(record->position);
  }
  writer.join();
}

}  // namespace

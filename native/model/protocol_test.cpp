// The protocol as the code has it, over all interleavings of small rings.
#include "check.hpp"

using namespace fabric::model;

namespace {

std::vector<Op> ask_taken() { return {{OpKind::Taken}}; }
std::vector<Op> close_ring() { return {{OpKind::Close}}; }

// Two claims at once, settled in the other order.
std::vector<Op> put_two_backwards(std::uint8_t first, std::uint8_t second) {
  return {{OpKind::Claim, 0, first}, {OpKind::Claim, 1, second}, {OpKind::Commit, 1},
          {OpKind::Commit, 0}};
}

TEST(ModelProtocol, TwoWritersWrapWithATailGap) {
  Config config = ring({{put(2)}, {put(2)}}, 5);
  expect_passes("two writers, gap, sleeping reader", config);
  expect_passes_in_both_modes("two writers, gap", polling(config));
  config.writers = {{put(2) + put(2)}, {put(1)}};
  expect_passes("two writers, three records, sleeping reader", config);
  expect_passes_in_both_modes("two writers, three records", polling(config));
}

TEST(ModelProtocol, ThreeWritersClaimAtOnce) {
  Config config = ring({{put(1)}, {put(1)}, {put(1)}}, 6);
  expect_passes("three writers, sleeping reader", config);
  config.writers = {{put(2)}, {put(2)}, {put(2)}};
  expect_passes("three writers of two lines, gap, sleeping reader", config);
}

TEST(ModelProtocol, EightLinesTakeLargerRecords) {
  Config config = ring({{put(3) + put(2)}, {put(4)}}, 13);
  config.lines = 8;
  config.hold_max = 2;
  expect_passes("eight lines, two held, sleeping reader", config);
}

TEST(ModelProtocol, TheReaderReleasesOutOfOrder) {
  Config config = ring({{put(1)}, {put(2)}}, 5);
  config.hold_max = 2;
  expect_passes_in_both_modes("two held", polling(config));
  config.writers = {{put(1) + put(2)}, {put(1)}};
  expect_passes("two held, three records, sleeping reader", config);
  config.writers = {{put(1) + put(1) + put(2)}};
  expect_passes_in_both_modes("two held, one writer, sleeping reader", config);
}

TEST(ModelProtocol, CommitsComeOutOfOrder) {
  const Config config = ring({{put_two_backwards(1, 1)}, {put(1)}}, 5);
  expect_passes("commit out of order, sleeping reader", config);
  expect_passes_in_both_modes("commit out of order", polling(config));
  expect_passes_in_both_modes("commit out of order, one writer, sleeping reader",
                              ring({{put_two_backwards(1, 1) + put(2)}}, 5));
}

TEST(ModelProtocol, AnAbortedRecordIsPassedLikeAGap) {
  const Config config = ring({{take_back(2)}, {put(2)}}, 5);
  expect_passes("abort, sleeping reader", config);
  expect_passes_in_both_modes("abort", polling(config));
}

TEST(ModelProtocol, AGapIsClaimedAloneWhenTheRecordDoesNotFit) {
  Config config = ring({{put(1) + put(3)}}, 6);
  expect_passes_in_both_modes("gap alone, sleeping reader", config);
  config.writers = {{put(1) + put(3)}, {put(1)}};
  config.hold_max = 2;
  expect_passes("gap alone, two writers, two held, sleeping reader", config);
  expect_passes_in_both_modes("gap alone, two writers, two held", polling(config));
}

TEST(ModelProtocol, NoWakeUpOfTheReaderIsLost) {
  expect_passes_in_both_modes("two writers wake the reader", ring({{put(1)}, {put(1)}}));
  expect_passes_in_both_modes("one writer wakes the reader", ring({{put(2) + put(1) + put(2)}}, 5));
}

TEST(ModelProtocol, NoWakeUpOfAReaderOnTheFutexIsLost) {
  expect_passes_in_both_modes("one writer wakes the futex", on_futex(ring({{put(2) + put(1)}})));
  expect_passes_in_both_modes("one writer wakes the futex, gap alone",
                              on_futex(ring({{put(1) + put(3)}}, 6)));
  Config config = on_futex(ring({{put(1)}, {put(1)}}));
  expect_passes("two writers wake the futex", config);
  config.writers = {{put(2)}, {put(2)}};
  config.start = 5;
  expect_passes("two writers wake the futex, gap", config);
  config.writers = {{put(1) + put(1)}};
  config.broker_may_die = true;
  expect_passes_in_both_modes("the broker dies, futex", config);
}

TEST(ModelProtocol, NoWakeUpOfAWaitingWriterIsLost) {
  Config config = ring({{put(2) + put(2) + put(1), WhenFull::Wait}});
  expect_passes_in_both_modes("the writer waits for space", config);
  config.writers = {{put(1) + put(1) + put(1) + put(3), WhenFull::Wait}};
  expect_passes("the writer waits again and again", config);
  config.writers = {{put(1) + put(1) + put(3), WhenFull::Wait}};
  expect_passes_in_both_modes("the writer waits with a gap in between", config);
  config.writers = {{put(3) + put(1), WhenFull::Wait}, {put(1), WhenFull::GiveUp}};
  expect_passes("one writer waits, another gives up", config);
}

TEST(ModelProtocol, TakenIsNeverSaidOfAnHonestReaderInVain) {
  const Config config = ring({{put(1) + ask_taken()}, {put(2)}}, 5);
  expect_passes("taken, sleeping reader", config);
  expect_passes_in_both_modes("taken", polling(config));
}

TEST(ModelProtocol, ARingIsClosedWhileOthersWrite) {
  const Config config = ring({{put(1) + put(2)}, {close_ring()}}, 5);
  expect_passes_in_both_modes("close", polling(config));
  expect_passes("close, sleeping reader", config);
}

TEST(ModelDeath, TheReaderDiesAtAnyStep) {
  Config config = ring({{put(2)}, {put(2)}}, 5);
  config.reader_may_die = true;
  expect_passes("the reader dies, sleeping reader", config);
  expect_passes_in_both_modes("the reader dies", polling(config));
  config.writers = {{put_two_backwards(1, 2) + put(2), WhenFull::Wait}};
  expect_passes_in_both_modes("the reader dies, the writer waits", config);
}

TEST(ModelDeath, TheBrokerDiesAtAnyStepAndWhatIsCommittedIsRead) {
  Config config = ring({{put(2)}, {put(2)}}, 5);
  config.broker_may_die = true;
  expect_passes("the broker dies, sleeping reader", config);
  expect_passes_in_both_modes("the broker dies", polling(config));
  config.writers = {{put_two_backwards(1, 1) + put(2)}};
  config.reader_may_die = true;
  expect_passes_in_both_modes("either dies, one writer, sleeping reader", config);
}

TEST(ModelLiar, NoPublishedPositionMakesTwoClaimsMeet) {
  Config config = ring({{put(2), WhenFull::GiveUp}, {put(2), WhenFull::GiveUp}});
  config.reader = ReaderKind::Liar;
  expect_passes_in_both_modes("liar", config);
  config.writers = {{put(2) + put(2), WhenFull::GiveUp}, {put(2), WhenFull::GiveUp}};
  expect_passes_in_both_modes("liar, three records", config);
  config.writers = {{put_two_backwards(1, 2), WhenFull::GiveUp}, {put(1), WhenFull::GiveUp}};
  expect_passes_in_both_modes("liar, commit out of order", config);
}

TEST(ModelLiar, AFalseTakenPositionIsFoundOut) {
  Config config = ring({{put(1) + ask_taken(), WhenFull::GiveUp}, {put(2), WhenFull::GiveUp}});
  config.reader = ReaderKind::Liar;
  expect_passes_in_both_modes("liar about taken", config);
}

// Positions are whole and never masked, so safety does not hang on the guard.
TEST(ModelProtocol, WithoutTheGuardLineTheRingIsStillSafe) {
  Config config = ring({{put(2)}, {put(2)}}, 5);
  config.protocol.guard_lines = 0;
  expect_passes_in_both_modes("no guard", polling(config));
  config.writers = {{put(2) + put(2)}, {put(2)}};
  config.start = 4;
  expect_passes("no guard, full to the last line, sleeping reader", config);
}

}  // namespace

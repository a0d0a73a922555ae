#include "fabric/wake.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "ring_fixture.hpp"

using namespace fabric;
using fabric::test::Ring;

namespace {

constexpr std::uint64_t kCapacity = 4096;

struct Pipe {
  Pipe() {
    signal(SIGPIPE, SIG_IGN);  // as Node does
    EXPECT_EQ(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
  }
  ~Pipe() {
    close(ends[0]);
    close(ends[1]);
  }
  // With a limit, so that a lost wake-up fails the test instead of hanging it.
  bool wait() {
    pollfd entry{ends[0], POLLIN, 0};
    if (poll(&entry, 1, 20'000) != 1) return false;
    return drain_pipe(ends[0]) == Drain::Emptied;
  }
  int ends[2];
};

TEST(Wake, SendsNothingToAReaderThatIsAwake) {
  Ring ring(kCapacity);
  ring.put(1);
  ring.read_and_release();
  ring.put(1);
  EXPECT_EQ(ring.writer->stat().wakeups, 0u);
}

TEST(Wake, SendsOneSignalForAGroupOfCommits) {
  Ring ring(kCapacity);
  EXPECT_TRUE(ring.nothing());
  for (int i = 0; i < 10; i++) ring.put(1);
  EXPECT_EQ(ring.writer->stat().wakeups, 1u);
}

TEST(Wake, SendsASignalForAnAbortedRecordToo) {
  Ring ring(kCapacity);
  EXPECT_TRUE(ring.nothing());
  ring.claim(0).abort();
  EXPECT_EQ(ring.writer->stat().wakeups, 1u);
}

TEST(Wake, SignalsASpaceWaitOnceForEachWait) {
  Ring ring(kCapacity);
  for (int i = 0; i < 20; i++) ring.put(1);
  EXPECT_TRUE(ring.writer->arm_space(0));
  for (int i = 0; i < 5; i++) ring.read_and_release();
  EXPECT_EQ(ring.reader->space_signals(), 1u);
  EXPECT_TRUE(ring.writer->arm_space(5 * 64));
  ring.read_and_release();
  EXPECT_EQ(ring.reader->space_signals(), 2u);
  ring.writer->disarm_space();
  ring.read_and_release();
  EXPECT_EQ(ring.reader->space_signals(), 2u);
}

TEST(Wake, DoesNotWaitForSpaceThatCameMeanwhile) {
  Ring ring(kCapacity);
  ring.put(1);
  ring.read_and_release();
  EXPECT_FALSE(ring.writer->arm_space(0));
  EXPECT_EQ(ring.wctl->space_waiting, 0u);
}

TEST(Wake, NeverBlocksOnAFullPipe) {
  Pipe pipe;
  Signal last = Signal::Sent;
  for (int i = 0; i < 200'000 && last == Signal::Sent; i++) last = signal_pipe(pipe.ends[1]);
  EXPECT_EQ(last, Signal::AlreadyPending);
}

TEST(Wake, KeepsItsOwnEndNonBlockingWhateverThePeerDoesToTheOther) {
  Pipe pipe;
  EXPECT_EQ(fcntl(pipe.ends[0], F_SETFL, 0), 0);  // the peer's end
  EXPECT_TRUE(fcntl(pipe.ends[1], F_GETFL) & O_NONBLOCK);
}

TEST(Wake, ReportsAPeerThatIsGone) {
  Pipe pipe;
  close(pipe.ends[0]);
  EXPECT_EQ(signal_pipe(pipe.ends[1]), Signal::PeerGone);
  pipe.ends[0] = -1;
  Pipe other;
  close(other.ends[1]);
  EXPECT_EQ(drain_pipe(other.ends[0]), Drain::EndOfFile);
  other.ends[1] = -1;
}

// Both sides sleep whenever they can: each lost wake-up would end the run.
TEST(Wake, LosesNoWakeUpOnEitherSide) {
  Pipe data;
  Pipe space;
  Ring ring(kCapacity, 0, data.ends[1], space.ends[1]);
  constexpr std::uint64_t rounds = 100'000;
  std::atomic<bool> lost{false};

  std::thread writing([&] {
    for (std::uint64_t i = 0; i < rounds && !lost;) {
      ClaimResult result = ring.writer->claim(400);
      if (auto* claim = std::get_if<Claim>(&result)) {
        claim->commit(i++);
      } else if (ring.writer->arm_space(std::get<Refused>(result).read_position)) {
        if (!space.wait()) lost = true;
      }
    }
  });
  std::uint64_t expected = 0;
  while (expected < rounds && !lost) {
    const NextResult result = ring.reader->next();
    if (const auto* record = std::get_if<Record>(&result)) {
      ASSERT_EQ(record->batch_sequence, expected++);
      ring.reader->release(record->position);
    } else if (!data.wait()) {
      lost = true;
    }
  }
  writing.join();
  EXPECT_FALSE(lost);
}

}  // namespace

// A reader that sleeps by futex instead of on the pipe.
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <string_view>
#include <thread>

#include "fabric/memory.hpp"
#include "fabric/test_point.hpp"
#include "fabric/wake.hpp"
#include "ring_fixture.hpp"

using namespace fabric;
using fabric::test::Ring;

namespace {

constexpr std::uint64_t kCapacity = 4096;
constexpr std::int64_t kMillisecond = 1'000'000;

std::int64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

TEST(Wait, IsOverAtOnceWhenARecordIsThere) {
  Ring ring(kCapacity);
  ring.put(1);
  EXPECT_TRUE(ring.reader->wait(0, 60'000 * kMillisecond));
  EXPECT_EQ(ring.rctl->waiting, kAwake);
  ring.read_and_release();
  EXPECT_EQ(ring.writer->stat().wakeups, 0u);
}

TEST(Wait, EndsAtItsTimeAndLeavesTheReaderAnnouncedForThePipe) {
  Ring ring(kCapacity);
  const std::int64_t begin = now_ns();
  EXPECT_FALSE(ring.reader->wait(10, 20 * kMillisecond));
  EXPECT_GE(now_ns() - begin, 20 * kMillisecond);
  EXPECT_EQ(ring.rctl->waiting, kWaitsOnPipe);
  ring.put(1);
  EXPECT_EQ(ring.writer->stat().wakeups, 1u);
  EXPECT_EQ(ring.wctl->data_wakes, 0u);
}

TEST(Wait, SeesAnAbortedRecordAsSomethingForNext) {
  Ring ring(kCapacity);
  ring.claim(0).abort();
  EXPECT_TRUE(ring.reader->wait(0, 0));
  EXPECT_TRUE(ring.nothing());
}

Ring* raced = nullptr;

// The commit falls between the announcement and the second look: the sleep must not begin.
TEST(Wait, DoesNotSleepOnARecordThatCameAfterTheAnnouncement) {
  Ring ring(kCapacity);
  raced = &ring;
  test_point_hook = [](const char* name) {
    if (std::string_view(name) == "wait.waiting_set") raced->put(1);
  };
  EXPECT_TRUE(ring.reader->wait(0, 60'000 * kMillisecond));
  test_point_hook = nullptr;
  EXPECT_EQ(ring.wctl->data_wakes, 1u);
}

// A wake-up between the second look and the sleep changes the word that the kernel compares.
TEST(Wait, IsRefusedByTheKernelOnceTheWordHasChanged) {
  std::atomic<std::uint32_t> word{7};
  const std::int64_t begin = now_ns();
  futex_wait(word, 6, 60'000 * kMillisecond);
  EXPECT_LT(now_ns() - begin, 30'000 * kMillisecond);
}

TEST(Wait, TakesAnUnknownAnnouncementForThePipe) {
  Ring ring(kCapacity);
  ring.rctl->waiting = 0xffffffff;
  ring.put(1);
  EXPECT_EQ(ring.wctl->data_wakes, 0u);
  EXPECT_EQ(ring.writer->stat().wakeups, 1u);
}

// The writer puts the next record only once the last one was read, so each lost wake-up would let
// the reader sleep to the end of its minute.
void ping_pong(RingWriter& writer, RingReader& reader, std::uint64_t rounds, std::uint32_t spins) {
  std::atomic<bool> lost{false};
  std::thread writing([&] {
    for (std::uint64_t i = 0; i < rounds && !lost; i++) {
      ClaimResult result = writer.claim(8);
      auto& claim = std::get<Claim>(result);
      const std::uint64_t end = claim.end();
      claim.commit(i);
      while (!writer.taken(end) && !lost) std::this_thread::yield();
    }
  });
  for (std::uint64_t expected = 0; expected < rounds && !lost;) {
    const NextResult result = reader.next();
    if (const auto* record = std::get_if<Record>(&result)) {
      ASSERT_EQ(record->batch_sequence, expected++);
      reader.release(record->position);
      continue;
    }
    const std::int64_t begin = now_ns();
    if (!reader.wait(spins, 60'000 * kMillisecond)) lost = now_ns() - begin > 50'000 * kMillisecond;
  }
  writing.join();
  EXPECT_FALSE(lost);
}

TEST(Wait, LosesNoWakeUp) {
  Ring ring(kCapacity);
  ping_pong(*ring.writer, *ring.reader, 20'000, 0);
  EXPECT_GT(ring.wctl->data_wakes, 0u);
}

TEST(Wait, LosesNoWakeUpAfterASpin) {
  Ring ring(kCapacity);
  ping_pong(*ring.writer, *ring.reader, 20'000, 50);
}

// As the consumer has it: the word is on a page that is mapped read-only, of another mapping.
TEST(Wait, WorksOnTheReadOnlyMappingOfTheConsumer) {
  RingMemory memory = RingMemory::create(kCapacityMinBytes, HugePages::Off, 0);
  std::vector<UniqueFd> descriptors;
  for (const int fd : memory.descriptors()) descriptors.emplace_back(dup(fd));
  RingAttachment attached = RingAttachment::attach(std::move(descriptors));
  RingWriter writer({memory.data(), kCapacityMinBytes, memory.writer(), memory.reader(), -1}, 0);
  RingReader reader({attached.data(), attached.capacity(), attached.writer(), attached.reader(), -1});
  ping_pong(writer, reader, 5'000, 0);
  EXPECT_GT(memory.writer()->data_wakes, 0u);
}

TEST(Wait, ToldByThePipeWhenTheWriterIsGone) {
  RingMemory memory = RingMemory::create(kCapacityMinBytes, HugePages::Off, 0);
  const UniqueFd read_end(dup(memory.descriptors()[3]));
  EXPECT_FALSE(is_hung_up(read_end.get()));
  memory = RingMemory::create(kCapacityMinBytes, HugePages::Off, 0);
  EXPECT_TRUE(is_hung_up(read_end.get()));
}

}  // namespace

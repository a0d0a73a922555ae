#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "fabric/errors.hpp"
#include "fabric/memory.hpp"
#include "fabric/ring_reader.hpp"
#include "fabric/ring_writer.hpp"

using namespace fabric;

namespace {

constexpr std::uint64_t kCapacity = 4ULL << 20;

std::vector<UniqueFd> copies(const RingMemory& memory) {
  std::vector<UniqueFd> fds;
  for (const int fd : memory.descriptors()) fds.emplace_back(fcntl(fd, F_DUPFD_CLOEXEC, 3));
  return fds;
}

RingMemory ring() { return RingMemory::create(kCapacity, HugePages::Off, 0); }

ErrorCode refused(std::vector<UniqueFd> fds) {
  std::vector<int> numbers;
  for (const UniqueFd& fd : fds) numbers.push_back(fd.get());
  try {
    (void)RingAttachment::attach(std::move(fds));
    ADD_FAILURE() << "attached";
  } catch (const RingFailure& failure) {
    for (const int fd : numbers) EXPECT_LT(fcntl(fd, F_GETFD), 0) << "left open: " << fd;
    return failure.code;
  }
  return ErrorCode::Closed;
}

TEST(Attach, ReadsWhatTheOtherMappingWrote) {
  const RingMemory memory = ring();
  RingWriter writer({memory.data(), kCapacity, memory.writer(), memory.reader(), -1}, 0);
  RingAttachment attached = RingAttachment::attach(copies(memory));
  RingReader reader({attached.data(), attached.capacity(), attached.writer(), attached.reader(),
                     attached.space_pipe()});
  ClaimResult result = writer.claim(3);
  Claim& claim = std::get<Claim>(result);
  std::memcpy(claim.payload(), "abc", 3);
  claim.commit(5);
  const NextResult found = reader.next();
  const Record record = std::get<Record>(found);
  EXPECT_NE(record.payload, memory.data() + 64) << "another mapping of the same bytes";
  EXPECT_EQ(std::memcmp(record.payload, "abc", 3), 0);
  EXPECT_TRUE(reader.release(record.position));
  EXPECT_EQ(writer.stat().used_bytes, 0u);
}

TEST(Attach, RefusesAWrongNumberOfDescriptors) {
  const RingMemory memory = ring();
  EXPECT_EQ(refused({}), ErrorCode::DescriptorInvalid);
  auto fds = copies(memory);
  fds.pop_back();
  EXPECT_EQ(refused(std::move(fds)), ErrorCode::DescriptorInvalid);
}

TEST(Attach, RefusesDescriptorsInAnotherOrder) {
  const RingMemory memory = ring();
  for (std::size_t first = 0; first < 5; first++) {
    for (std::size_t second = first + 1; second < 5; second++) {
      // wctl and rctl are told apart by the magic word, the pipes by nothing.
      if (first == 3) continue;
      auto fds = copies(memory);
      std::swap(fds[first], fds[second]);
      EXPECT_EQ(refused(std::move(fds)), ErrorCode::DescriptorInvalid) << first << second;
    }
  }
}

TEST(Attach, RefusesMemoryThatThePeerCouldCutShort) {
  const RingMemory memory = ring();
  auto fds = copies(memory);
  UniqueFd unsealed = anonymous_file("test", 0);
  ASSERT_EQ(ftruncate(unsealed.get(), static_cast<off_t>(kCapacity)), 0);
  fds[0] = std::move(unsealed);
  EXPECT_EQ(refused(std::move(fds)), ErrorCode::DescriptorInvalid);
}

TEST(Attach, RefusesAnotherAbiAndAnotherCapacity) {
  const RingMemory memory = ring();
  memory.writer()->abi_version = kAbiVersion + 1;
  EXPECT_EQ(refused(copies(memory)), ErrorCode::AbiMismatch);
  memory.writer()->abi_version = kAbiVersion;
  memory.writer()->capacity = kCapacity * 2;
  EXPECT_EQ(refused(copies(memory)), ErrorCode::DescriptorInvalid);
  memory.writer()->capacity = kCapacity;
  memory.writer()->magic = 0;
  EXPECT_EQ(refused(copies(memory)), ErrorCode::DescriptorInvalid);
}

TEST(Attach, RefusesAReadPositionThatIsNotAligned) {
  const RingMemory memory = ring();
  memory.reader()->read_position = kCapacity - 8;
  EXPECT_EQ(refused(copies(memory)), ErrorCode::DescriptorInvalid);
}

TEST(AttachDeathTest, NamesRingAndOffsetWhenTheMappingIsWritten) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        // Of the handlers before ours, a sanitizer's would end the process in its own way.
        signal(SIGSEGV, SIG_DFL);
        const RingMemory memory = ring();
        memory.writer()->ring_id = 0xabc;
        const RingAttachment attached = RingAttachment::attach(copies(memory));
        const_cast<std::byte*>(attached.data())[0x1234] = std::byte{1};
      },
      testing::KilledBySignal(SIGSEGV),
      "ring 0000000000000abc at offset 0x0000001234: a batch is read in place");
}

TEST(AttachDeathTest, HandsEveryOtherFaultToTheHandlerBeforeIt) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        struct sigaction earlier {};
        earlier.sa_handler = [](int) { _exit(42); };
        sigaction(SIGSEGV, &earlier, nullptr);
        const RingMemory memory = ring();
        const RingAttachment attached = RingAttachment::attach(copies(memory));
        raise(SIGSEGV);
      },
      testing::ExitedWithCode(42), "^$");
}

}  // namespace

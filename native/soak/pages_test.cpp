// No SIGBUS, whatever the pool of huge pages, /dev/shm and the consumer do. Each case touches every
// byte afterwards: a page that is not there would end the test program.
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cstring>

#include <gtest/gtest.h>

#include "fabric/errors.hpp"
#include "fabric/ring_writer.hpp"
#include "huge_pool.hpp"
#include "seals.hpp"
#include "sigbus.hpp"

using namespace fabric;
using namespace fabric::soak;

namespace {

constexpr std::uint64_t kCapacity = 8ULL << 20;
constexpr std::int64_t kPagesNeeded = kCapacity / kHugePageBytes;

TEST(RingPages, ARingKeepsItsPagesWhenThePoolIsShrunk) {
  const HugePool pool = HugePool::with(16);
  if (HugePool::available() < kPagesNeeded) {
    GTEST_SKIP() << "this host has no huge pages, nor the right to reserve some";
  }
  const RingMemory memory = RingMemory::create(kCapacity, HugePages::Try, 0);
  pool.resize(0);
  EXPECT_TRUE(touches_all(memory)) << memory.reason();
  const RingMemory later = RingMemory::create(kCapacity, HugePages::Try, 0);
  EXPECT_TRUE(touches_all(later)) << later.reason();
}

TEST(RingPages, APoolThatIsTooSmallIsAnErrorOrAFallbackAndNoSignal) {
  int tried = 0;
  for (const std::int64_t pages : {0, 1, 3}) {
    const HugePool pool = HugePool::of(pages);
    if (HugePool::available() >= kPagesNeeded) continue;  // others hold more: not ours to shrink
    tried++;
    EXPECT_THROW((void)RingMemory::create(kCapacity, HugePages::Require, 0), RingFailure) << pages;
    const RingMemory memory = RingMemory::create(kCapacity, HugePages::Try, 0);
    EXPECT_TRUE(touches_all(memory)) << memory.reason();
  }
  if (tried == 0) GTEST_SKIP() << "no right to shrink the pool of huge pages";
}

TEST(RingPages, HugePagesAreAskedForBySize) {
  const HugePool pool = HugePool::with(16);
  if (HugePool::available() < kPagesNeeded) {
    GTEST_SKIP() << "this host has no huge pages, nor the right to reserve some";
  }
  const RingMemory memory = RingMemory::create(kCapacity, HugePages::Try, 0);
  struct statfs info {};
  ASSERT_EQ(fstatfs(memory.descriptors()[0], &info), 0);
  // A host whose default is 1 GiB pages would give those to whoever names no size.
  if (memory.pages() == Pages::Huge) {
    EXPECT_EQ(static_cast<std::uint64_t>(info.f_bsize), kHugePageBytes);
  }
}

TEST(RingPages, TheSizeOfDevShmDoesNotMatter) {
  for (const HugePages kind : {HugePages::Off, HugePages::Try}) {
    const Outcome outcome = in_child([&] {
      const bool own = unshare(CLONE_NEWNS) == 0 &&
                       mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                       mount("none", "/dev/shm", "tmpfs", 0, "size=65536") == 0;
      if (!own) return Outcome::NotPossible;
      const RingMemory memory = RingMemory::create(kCapacity, kind, 0);
      return touches_all(memory) ? Outcome::Sound : Outcome::Wrong;
    });
    if (outcome == Outcome::NotPossible) GTEST_SKIP() << "no right to a mount namespace";
    EXPECT_EQ(outcome, Outcome::Sound);
  }
}

TEST(RingPages, AHoleInTheConsumersPageIsNoSignalInTheBroker) {
  const RingMemory memory = RingMemory::create(kCapacity, HugePages::Off, 4096);
  RingWriter ring({memory.data(), kCapacity, memory.writer(), memory.reader(), -1}, 4096);
  const Outcome outcome = in_child_of(memory, [&](int, int, int rctl) {
    const int hole = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    return fallocate(rctl, hole, 0, static_cast<off_t>(kControlBytes)) == 0 ? Outcome::Sound
                                                                            : Outcome::NotPossible;
  });
  if (outcome == Outcome::NotPossible) GTEST_SKIP() << "this kernel makes no holes in such memory";
  EXPECT_EQ(outcome, Outcome::Sound);
  // The page reads as zeros now: a read position that went back, so a lie and nothing worse.
  EXPECT_TRUE(ring.stat().poisoned);
}

TEST(RingPages, TheConsumerCannotCutOrPunchTheBrokersMemory) {
  const RingMemory memory = RingMemory::create(kCapacity, HugePages::Try, 0);
  const Outcome outcome = in_child_of(memory, [&](int data, int wctl, int rctl) {
    const int hole = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    bool refused = true;
    for (const int fd : {data, wctl, rctl}) refused = refused && ftruncate(fd, 0) != 0;
    for (const int fd : {data, wctl}) refused = refused && fallocate(fd, hole, 0, 4096) != 0;
    return refused ? Outcome::Sound : Outcome::Wrong;
  });
  EXPECT_EQ(outcome, Outcome::Sound);
  EXPECT_TRUE(touches_all(memory));
}

TEST(RingPages, ASealThatDoesNotHoldIsAnErrorAndNoPromise) {
  // Made without MFD_ALLOW_SEALING: as on a kernel where the seal cannot be had.
  const UniqueFd fd(static_cast<int>(memfd_create("unsealable", MFD_CLOEXEC)));
  ASSERT_EQ(ftruncate(fd.get(), 4096), 0);
  try {
    seal_against_writers(fd.get(), 4096);
    ADD_FAILURE() << "sealed";
  } catch (const RingFailure& failure) {
    EXPECT_EQ(failure.code, ErrorCode::SealIneffective);
  }
}

}  // namespace

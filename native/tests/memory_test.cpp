// What the kernel really gives. Judged by /proc, whatever this host has, and by what /proc says of
// this process alone: others use the pool of huge pages at the same time.
#include "fabric/memory.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "fabric/errors.hpp"

using namespace fabric;

namespace {

constexpr std::uint64_t kCapacity = 8ULL << 20;
constexpr std::uint64_t kPagesNeeded = kCapacity / kHugePageBytes;
const char* const kPool = "/sys/kernel/mm/hugepages/hugepages-2048kB/";

std::int64_t pool(const char* name) {
  std::int64_t value = -1;
  std::ifstream(std::string(kPool) + name) >> value;
  return value;
}

std::int64_t available() { return pool("free_hugepages") - pool("resv_hugepages"); }

std::uint64_t own_huge_bytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  std::uint64_t kb = 0;
  while (status >> word) {
    if (word == "HugetlbPages:") status >> kb;
  }
  return kb * 1024;
}

int own_ring_mappings() {
  int count = 0;
  std::ifstream maps("/proc/self/maps");
  std::string line;
  while (std::getline(maps, line)) count += line.find("/memfd:fabric") != std::string::npos;
  return count;
}

// Memory files of rings that this process holds open or mapped: such a file keeps its pages.
int own_ring_files() {
  int count = own_ring_mappings();
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const auto target = std::filesystem::read_symlink(entry.path(), gone);
    count += target.string().starts_with("/memfd:fabric");
  }
  return count;
}

// Tries to make the pool `pages` large and puts the old number back. One process at a time, or two
// of them would put back each other's numbers.
class PoolOf {
 public:
  explicit PoolOf(std::int64_t pages)
      : lock_(open("/tmp/fabric-huge-pages.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    flock(lock_.get(), LOCK_EX);
    before_ = pool("nr_hugepages");
    set(pages);
  }
  ~PoolOf() { set(before_); }

 private:
  static void set(std::int64_t pages) {
    std::ofstream(std::string(kPool) + "nr_hugepages") << pages << std::flush;
  }
  UniqueFd lock_;
  std::int64_t before_ = 0;
};

ErrorCode failure(std::uint64_t capacity, HugePages huge_pages, std::uint64_t start = 0) {
  try {
    (void)RingMemory::create(capacity, huge_pages, start);
  } catch (const RingFailure& failure) {
    EXPECT_FALSE(std::string(failure.what()).empty());
    return failure.code;
  }
  ADD_FAILURE() << "created";
  return ErrorCode::Closed;
}

int open_descriptors() {
  int count = 0;
  for (int fd = 0; fd < 1024; fd++) count += fcntl(fd, F_GETFD) >= 0;
  return count;
}

TEST(Memory, RefusesACapacityThatIsNoPowerOfTwoInRange) {
  for (const std::uint64_t capacity : {0ULL, 1ULL, 4096ULL, 2ULL << 20, 6ULL << 20,
                                       (4ULL << 20) + 64, 32ULL << 30, 1ULL << 63, ~0ULL}) {
    EXPECT_EQ(failure(capacity, HugePages::Off), ErrorCode::CapacityInvalid) << capacity;
  }
}

TEST(Memory, RefusesAStartThatIsNotAligned) {
  EXPECT_EQ(failure(kCapacity, HugePages::Off, 1), ErrorCode::OptionInvalid);
}

TEST(Memory, SaysWhichPagesItGot) {
  const RingMemory memory = RingMemory::create(kCapacity, HugePages::Try, 0);
  std::memset(memory.data(), 1, kCapacity);
  EXPECT_EQ(own_huge_bytes(), memory.pages() == Pages::Huge ? kCapacity : 0) << memory.reason();
  EXPECT_EQ(memory.writer()->page_bytes, page_bytes_of(memory.pages()));
}

TEST(Memory, GetsHugePagesWhereThePoolHasThemAndGivesThemBack) {
  const PoolOf pool_of(std::max<std::int64_t>(64, pool("nr_hugepages")));
  if (available() < static_cast<std::int64_t>(kPagesNeeded)) {
    EXPECT_EQ(failure(kCapacity, HugePages::Require), ErrorCode::HugePagesUnavailable);
    GTEST_SKIP() << "this host has no huge pages, nor the right to reserve some";
  }
  {
    const RingMemory memory = RingMemory::create(kCapacity, HugePages::Require, 0);
    EXPECT_EQ(memory.pages(), Pages::Huge);
    EXPECT_EQ(memory.reason(), "2 MiB huge pages");
    struct stat info {};
    ASSERT_EQ(fstat(memory.descriptors()[0], &info), 0);
    EXPECT_EQ(static_cast<std::uint64_t>(info.st_blocks) * 512, kCapacity)
        << "all of them are there before anyone touches one";
    std::memset(memory.data(), 1, kCapacity);
    EXPECT_EQ(own_huge_bytes(), kCapacity);
  }
  EXPECT_EQ(own_huge_bytes(), 0u);
  EXPECT_EQ(own_ring_files(), 0);
}

TEST(Memory, KeepsNoPageWhenThePoolIsTooSmall) {
  const PoolOf pool_of(2);
  if (available() >= static_cast<std::int64_t>(kPagesNeeded)) {
    GTEST_SKIP() << "no right to shrink the pool of huge pages";
  }
  EXPECT_EQ(failure(kCapacity, HugePages::Require), ErrorCode::HugePagesUnavailable);
  EXPECT_EQ(own_ring_files(), 0);
  const RingMemory memory = RingMemory::create(kCapacity, HugePages::Try, 0);
  EXPECT_NE(memory.pages(), Pages::Huge);
  EXPECT_NE(memory.reason().find("2 MiB pages free (pool: "), std::string::npos)
      << memory.reason();
  EXPECT_EQ(own_huge_bytes(), 0u);
  std::memset(memory.data(), 1, kCapacity);
}

TEST(Memory, FallsBackWhenThePoolIsEmpty) {
  const PoolOf pool_of(0);
  if (pool("nr_hugepages") != 0) {
    GTEST_SKIP() << "no right to empty the pool of huge pages, or others hold some";
  }
  const RingMemory memory = RingMemory::create(kCapacity, HugePages::Try, 0);
  EXPECT_NE(memory.pages(), Pages::Huge);
  EXPECT_NE(memory.reason().find("no 2 MiB pages free (pool: 0)"), std::string::npos)
      << memory.reason();
}

TEST(Memory, ClaimsTransparentHugePagesOnlyWhereTheKernelMapsThem) {
  const PoolOf pool_of(0);
  const RingMemory memory = RingMemory::create(kCapacity, HugePages::Try, 0);
  std::ifstream maps("/proc/self/smaps");
  std::string word;
  std::uint64_t mapped_kb = 0;
  std::uint64_t kb = 0;
  while (maps >> word) {
    if (word == "ShmemPmdMapped:" && maps >> kb) mapped_kb += kb;
  }
  EXPECT_EQ(memory.pages() == Pages::Transparent, mapped_kb * 1024 >= kCapacity)
      << memory.reason();
}

TEST(Memory, UsesBasePagesWhenHugePagesAreOff) {
  const DataRegion region = allocate_data(kCapacity, HugePages::Off);
  EXPECT_EQ(region.pages, Pages::Base);
  EXPECT_EQ(region.reason, "huge pages are off: using 4 KiB pages");
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(region.mapping.data()) % kHugePageBytes, 0u);
}

TEST(Memory, RefusesMoreThanTheHostHas) {
  std::int64_t available_kb = 0;
  std::string word;
  std::ifstream info("/proc/meminfo");
  while (info >> word) {
    if (word == "MemAvailable:") info >> available_kb;
  }
  if (available_kb >= 16LL << 20) GTEST_SKIP() << "the largest ring fits here";
  EXPECT_EQ(failure(kCapacityMaxBytes, HugePages::Off), ErrorCode::MemoryUnavailable);
}

// For data (in each kind of pages) and wctl.
void expect_sealed(int fd, std::size_t bytes) {
  EXPECT_EQ(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
  EXPECT_EQ(errno, EPERM);
  EXPECT_NE(ftruncate(fd, 0), 0);
  EXPECT_EQ(errno, EPERM);
  EXPECT_NE(ftruncate(fd, static_cast<off_t>(2 * bytes)), 0);
  EXPECT_NE(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes)),
            0);
  EXPECT_LT(pwrite(fd, "x", 1, 0), 0);
  void* mapped = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  EXPECT_NE(mprotect(mapped, bytes, PROT_READ | PROT_WRITE), 0);
  EXPECT_EQ(errno, EACCES);
  munmap(mapped, bytes);
}

TEST(Memory, LetsNobodyMapTheRingWritable) {
  for (const HugePages kind : {HugePages::Try, HugePages::Off}) {
    const RingMemory memory = RingMemory::create(kCapacity, kind, 0);
    expect_sealed(memory.descriptors()[0], kCapacity);
    expect_sealed(memory.descriptors()[1], kControlBytes);
    std::memset(memory.data(), 3, kCapacity);  // our own mapping still is
  }
}

TEST(Memory, LetsTheConsumerWriteItsPageButNotResizeIt) {
  const RingMemory memory = RingMemory::create(kCapacity, HugePages::Off, 0);
  const int rctl = memory.descriptors()[2];
  void* mapped = mmap(nullptr, kControlBytes, PROT_READ | PROT_WRITE, MAP_SHARED, rctl, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  munmap(mapped, kControlBytes);
  EXPECT_NE(ftruncate(rctl, 0), 0);
  EXPECT_NE(fcntl(rctl, F_ADD_SEALS, F_SEAL_WRITE), 0) << "nor seal it against the broker";
}

TEST(Memory, ClosesEveryDescriptorOnExecAndBlocksOnNone) {
  const RingMemory memory = RingMemory::create(kCapacity, HugePages::Off, 0);
  for (const int fd : memory.descriptors()) EXPECT_TRUE(fcntl(fd, F_GETFD) & FD_CLOEXEC);
  for (const int fd : {memory.data_pipe(), memory.space_pipe(), memory.descriptors()[3],
                       memory.descriptors()[4]}) {
    EXPECT_TRUE(fcntl(fd, F_GETFL) & O_NONBLOCK);
  }
}

TEST(Memory, IsNotMappedInAForkedChild) {
  const RingMemory memory = RingMemory::create(kCapacity, HugePages::Off, 0);
  EXPECT_EQ(own_ring_mappings(), 3);
  const pid_t child = fork();
  if (child == 0) {
    _exit(own_ring_mappings());
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Memory, LeavesNoDescriptorBehind) {
  const int before = open_descriptors();
  for (int i = 0; i < 20; i++) (void)RingMemory::create(kCapacity, HugePages::Try, 0);
  EXPECT_EQ(open_descriptors(), before);
}

}  // namespace

// Where a ring's memory comes from. The order of the calls is the point of this file:
// - memfd_create is no probe: it succeeds with an empty pool. ftruncate reserves nothing.
// - mmap without NORESERVE reserves pool pages and fails cleanly, unlike MAP_POPULATE, whose errors
//   are swallowed and come back as SIGBUS.
// - a cgroup limit bites only when a page is allocated: fallocate reports it as ENOSPC.
// - a failed fallocate leaves what it got allocated until the descriptor is closed.
#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <fstream>

#include "fabric/errors.hpp"
#include "fabric/memory.hpp"

namespace fabric {

namespace {

// By value: the headers of older systems lack them.
constexpr unsigned kNoExecSeal = 0x0008;
constexpr unsigned kHugeTlb = 0x0004;
constexpr unsigned kHuge2Mib = 21u << 26;
constexpr int kPopulateWrite = 23;
constexpr int kCollapse = 25;

std::uint64_t read_number(const char* path) {
  std::uint64_t value = 0;
  std::ifstream(path) >> value;
  return value;
}

// fallocate of many 2 MiB pages stops at any signal; it goes on where it was.
int allocate_all(int fd, std::uint64_t bytes) {
  for (;;) {
    if (fallocate(fd, 0, 0, static_cast<off_t>(bytes)) == 0) return 0;
    if (errno != EINTR) return errno;
  }
}

std::string huge_refusal(std::uint64_t capacity, int error) {
  const auto total = read_number("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages");
  const auto free = read_number("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
  const auto reserved = read_number("/sys/kernel/mm/hugepages/hugepages-2048kB/resv_hugepages");
  const std::uint64_t needed = capacity / kHugePageBytes;
  const std::uint64_t available = free > reserved ? free - reserved : 0;
  if (available == 0) return "no 2 MiB pages free (pool: " + std::to_string(total) + ")";
  if (available < needed) {
    return "only " + std::to_string(available) + " of " + std::to_string(needed) +
           " 2 MiB pages free (pool: " + std::to_string(total) + ")";
  }
  return "2 MiB pages refused: " + errno_text(error) +
         ", a hugetlb limit of the control group or the kernel's configuration";
}

// 0 = got them, else the errno that says why not; then everything is given back.
int try_huge(std::uint64_t capacity, DataRegion& region) {
  UniqueFd fd = anonymous_file("fabric-data", kHugeTlb | kHuge2Mib);
  if (!fd.valid()) return errno;
  if (ftruncate(fd.get(), static_cast<off_t>(capacity)) != 0) return errno;
  Mapping mapping = map_shared(fd.get(), capacity, PROT_READ | PROT_WRITE);
  if (!mapping) return errno;
  if (const int error = allocate_all(fd.get(), capacity)) return error;
  region.fd = std::move(fd);
  region.mapping = std::move(mapping);
  region.pages = Pages::Huge;
  region.reason = "2 MiB huge pages";
  return 0;
}

// Shared memory is not refused but ends in the out-of-memory killer, so ask first.
void check_available(std::uint64_t capacity) {
  std::ifstream info("/proc/meminfo");
  std::string line;
  std::uint64_t available_kb = 0;
  while (std::getline(info, line)) {
    if (std::sscanf(line.c_str(), "MemAvailable: %" SCNu64 " kB", &available_kb) == 1) break;
  }
  if (available_kb == 0 || capacity / 1024 <= available_kb) return;
  throw RingFailure(ErrorCode::MemoryUnavailable,
                    "a ring of " + std::to_string(capacity >> 20) + " MiB does not fit in the " +
                        std::to_string(available_kb >> 10) + " MiB that are available",
                    "capacityBytes");
}

[[noreturn]] void no_memory(std::uint64_t capacity, int error) {
  throw RingFailure(ErrorCode::MemoryUnavailable,
                    "no memory for a ring of " + std::to_string(capacity >> 20) +
                        " MiB: " + errno_text(error),
                    "capacityBytes");
}

// How much of the mapping the kernel really maps by 2 MiB entries. MADV_COLLAPSE alone proves little.
std::uint64_t huge_mapped_bytes(const Mapping& mapping) {
  std::ifstream maps("/proc/self/smaps");
  const auto start = reinterpret_cast<std::uintptr_t>(mapping.data());
  std::string line;
  bool inside = false;
  std::uint64_t total_kb = 0;
  while (std::getline(maps, line)) {
    std::uint64_t from = 0;
    std::uint64_t to = 0;
    std::uint64_t kb = 0;
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " ", &from, &to) == 2) {
      inside = from >= start && to <= start + mapping.bytes();
    } else if (inside && std::sscanf(line.c_str(), "ShmemPmdMapped: %" SCNu64 " kB", &kb) == 1) {
      total_kb += kb;
    }
  }
  return total_kb * 1024;
}

// All pages are there afterwards, in one size or the other.
int populate(int fd, const Mapping& mapping) {
  while (madvise(mapping.data(), mapping.bytes(), kPopulateWrite) != 0) {
    if (errno == EINTR || errno == EAGAIN) continue;
    if (errno != EINVAL) return errno;
    return allocate_all(fd, mapping.bytes());  // a kernel before 5.14
  }
  return 0;
}

// More address space than needed, the file over its aligned part, the rest given back.
void* map_aligned(int fd, std::size_t bytes, int protection, std::size_t alignment) {
  const std::size_t span = bytes + alignment;
  void* reserved = mmap(nullptr, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return MAP_FAILED;
  const auto base = reinterpret_cast<std::uintptr_t>(reserved);
  const std::uintptr_t aligned = (base + alignment - 1) & ~(alignment - 1);
  const std::uintptr_t end = aligned + bytes;
  void* mapped =
      mmap(reinterpret_cast<void*>(aligned), bytes, protection, MAP_SHARED | MAP_FIXED, fd, 0);
  if (mapped == MAP_FAILED) {
    const int error = errno;
    munmap(reserved, span);
    errno = error;
    return MAP_FAILED;
  }
  if (aligned > base) munmap(reserved, aligned - base);
  if (base + span > end) munmap(reinterpret_cast<void*>(end), base + span - end);
  return mapped;
}

DataRegion allocate_shared(std::uint64_t capacity, bool want_huge, const std::string& why) {
  check_available(capacity);
  DataRegion region;
  region.fd = anonymous_file("fabric-data", 0);
  if (!region.fd.valid()) no_memory(capacity, errno);
  if (ftruncate(region.fd.get(), static_cast<off_t>(capacity)) != 0) no_memory(capacity, errno);
  region.mapping = map_shared(region.fd.get(), capacity, PROT_READ | PROT_WRITE);
  if (!region.mapping) no_memory(capacity, errno);

  // Advice first, for a kernel that gives huge pages at once where it is asked to.
  (void)madvise(region.mapping.data(), capacity, want_huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  if (const int error = populate(region.fd.get(), region.mapping)) no_memory(capacity, error);
  const std::string prefix = why.empty() ? "" : why + ": using ";
  if (want_huge) {
    // Works where transparent huge pages of shared memory are switched off (Linux 6.1).
    (void)madvise(region.mapping.data(), capacity, kCollapse);
    if (huge_mapped_bytes(region.mapping) == capacity) {
      region.pages = Pages::Transparent;
      region.reason = prefix + "transparent huge pages";
      return region;
    }
  }
  region.pages = Pages::Base;
  region.reason = prefix + "4 KiB pages";
  return region;
}

}  // namespace

UniqueFd anonymous_file(const char* name, unsigned flags) {
  // By syscall: glibc has had the function only since 2.27.
  const auto create = [&](unsigned more) {
    return static_cast<int>(
        syscall(SYS_memfd_create, name, MFD_CLOEXEC | MFD_ALLOW_SEALING | flags | more));
  };
  int fd = create(kNoExecSeal);
  if (fd < 0 && errno == EINVAL) fd = create(0);  // a kernel before 6.3
  UniqueFd owned(fd);
  if (owned.valid()) (void)fchmod(fd, 0600);
  return owned;
}

Mapping map_shared(int fd, std::size_t bytes, int protection) {
  const std::size_t alignment = bytes % kHugePageBytes == 0 ? kHugePageBytes : kBasePageBytes;
  void* mapped = mmap(nullptr, bytes, protection, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) return {};
  // Files on 2 MiB pages, and all files on newer kernels, come aligned.
  if (reinterpret_cast<std::uintptr_t>(mapped) % alignment != 0) {
    munmap(mapped, bytes);
    mapped = map_aligned(fd, bytes, protection, alignment);
    if (mapped == MAP_FAILED) return {};
  }
  Mapping mapping(static_cast<std::byte*>(mapped), bytes);
  if (madvise(mapped, bytes, MADV_DONTFORK) != 0) return {};
  return mapping;
}

DataRegion allocate_data(std::uint64_t capacity, HugePages huge_pages) {
  if (huge_pages == HugePages::Off) return allocate_shared(capacity, false, "huge pages are off");
  DataRegion region;
  const int error = try_huge(capacity, region);
  if (error == 0) return region;
  const std::string why = huge_refusal(capacity, error);
  if (huge_pages == HugePages::Require) {
    throw RingFailure(ErrorCode::HugePagesUnavailable,
                      why + "; reserve them (sysctl vm.nr_hugepages) or set hugePages to 'try'",
                      "hugePages");
  }
  return allocate_shared(capacity, true, why);
}

}  // namespace fabric

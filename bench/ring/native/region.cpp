#include "region.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <new>

#include "fabric/errors.hpp"

namespace bench {

namespace {

constexpr int kPopulateRead = 22;
constexpr int kPopulateWrite = 23;
constexpr int kCollapse = 25;

[[noreturn]] void fail(const char* what) {
  throw fabric::RingFailure(fabric::ErrorCode::MemoryUnavailable,
                            std::string(what) + ": " + fabric::errno_text(errno));
}

// The library makes transparent pages only where the pool is empty, so the bench makes its own.
void open_transparent(Region& region, std::uint64_t capacity) {
  region.data_fd = fabric::anonymous_file("bench-data", 0);
  if (!region.data_fd.valid()) fail("memfd");
  if (ftruncate(region.data_fd.get(), static_cast<off_t>(capacity)) != 0) fail("ftruncate");
  region.data = fabric::map_shared(region.data_fd.get(), capacity, PROT_READ | PROT_WRITE);
  if (!region.data) fail("mmap");
  (void)madvise(region.data.data(), capacity, MADV_HUGEPAGE);
  if (madvise(region.data.data(), capacity, kPopulateWrite) != 0) fail("populate");
  if (madvise(region.data.data(), capacity, kCollapse) != 0) fail("collapse");
  region.pages = fabric::Pages::Transparent;
}

void open_by_library(Region& region, std::uint64_t capacity, bool huge) {
  auto data = fabric::allocate_data(capacity,
                                    huge ? fabric::HugePages::Require : fabric::HugePages::Off);
  region.data_fd = std::move(data.fd);
  region.data = std::move(data.mapping);
  region.pages = data.pages;
}

}  // namespace

Region open_region(std::uint64_t capacity, std::string_view pages) {
  Region region;
  if (pages == "transparent") {
    open_transparent(region, capacity);
  } else {
    open_by_library(region, capacity, pages == "huge");
  }
  constexpr std::uint64_t control_bytes = 2 * fabric::kControlBytes;
  region.control_fd = fabric::anonymous_file("bench-control", 0);
  if (ftruncate(region.control_fd.get(), control_bytes) != 0) fail("ftruncate");
  region.control =
      fabric::map_shared(region.control_fd.get(), control_bytes, PROT_READ | PROT_WRITE);
  if (!region.control) fail("mmap");
  auto* writer = new (region.writer()) fabric::WriterControl{};
  new (region.reader()) fabric::ReaderControl{};
  writer->capacity = capacity;
  writer->key = 0x9e3779b97f4a7c15;
  return region;
}

void map_again_as_reader(Region& region) {
  const std::size_t bytes = region.data.bytes();
  // The parent's addresses mean nothing here: unmapping them would take away someone else's memory.
  new (&region.data) fabric::Mapping(fabric::map_shared(region.data_fd.get(), bytes, PROT_READ));
  new (&region.control) fabric::Mapping(fabric::map_shared(
      region.control_fd.get(), 2 * fabric::kControlBytes, PROT_READ | PROT_WRITE));
  if (!region.data || !region.control) fail("mmap");
  (void)madvise(region.data.data(), bytes, kPopulateRead);
}

}  // namespace bench

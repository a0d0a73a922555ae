// The host's pool of 2 MiB pages, changed for the length of a test and put back.
#pragma once

#include <fcntl.h>
#include <sys/file.h>

#include <cstdint>
#include <fstream>
#include <string>

#include "fabric/memory.hpp"

namespace fabric::soak {

// One process at a time, or two of them would put back each other's numbers: every test that changes
// the pool holds this lock.
class HugePool {
 public:
  // With `pages` more than it has, which others that use it at the same time leave free.
  static HugePool with(std::int64_t pages) { return HugePool(pages, true); }
  // With no more than `pages`, as far as no one uses more.
  static HugePool of(std::int64_t pages) { return HugePool(pages, false); }
  ~HugePool() { resize(before_); }
  HugePool(const HugePool&) = delete;
  HugePool& operator=(const HugePool&) = delete;

  // Without the right to do so the pool stays as it is: callers look at what there is.
  void resize(std::int64_t pages) const {
    std::ofstream(file("nr_hugepages")) << pages << std::flush;
  }

  static std::int64_t available() { return number("free_hugepages") - number("resv_hugepages"); }

 private:
  HugePool(std::int64_t pages, bool more)
      : lock_(open("/tmp/fabric-huge-pages.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    flock(lock_.get(), LOCK_EX);
    before_ = number("nr_hugepages");
    resize(more ? before_ + pages : pages);
  }

  static std::string file(const char* name) {
    return std::string("/sys/kernel/mm/hugepages/hugepages-2048kB/") + name;
  }
  static std::int64_t number(const char* name) {
    std::int64_t value = 0;
    std::ifstream(file(name)) >> value;
    return value;
  }

  UniqueFd lock_;
  std::int64_t before_ = 0;
};

}  // namespace fabric::soak

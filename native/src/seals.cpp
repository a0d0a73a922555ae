#include "seals.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>

#include "fabric/errors.hpp"

namespace fabric {

namespace {

// From linux/fcntl.h, which can't be included beside fcntl.h everywhere.
constexpr int kAddSeals = 1033;
constexpr int kGetSeals = 1034;
constexpr int kSealSeal = 0x01;
constexpr int kSealShrink = 0x02;
constexpr int kSealGrow = 0x04;
constexpr int kSealFutureWrite = 0x10;

void add_seals(int fd, int seals) {
  if (fcntl(fd, kAddSeals, seals) == 0) return;
  throw RingFailure(ErrorCode::SealIneffective,
                    "the ring's memory can't be sealed: " + errno_text(errno));
}

}  // namespace

void seal_against_writers(int fd, std::uint64_t bytes) {
  add_seals(fd, kSealShrink | kSealGrow | kSealFutureWrite | kSealSeal);
  void* probe = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (probe == MAP_FAILED && errno == EPERM) return;
  if (probe != MAP_FAILED) munmap(probe, bytes);
  throw RingFailure(ErrorCode::SealIneffective,
                    "this kernel does not keep a consumer from mapping the ring writable");
}

void seal_size(int fd) { add_seals(fd, kSealShrink | kSealGrow | kSealSeal); }

bool size_is_sealed(int fd) {
  const int seals = fcntl(fd, kGetSeals);
  return seals >= 0 && (seals & kSealShrink) && (seals & kSealGrow);
}

}  // namespace fabric

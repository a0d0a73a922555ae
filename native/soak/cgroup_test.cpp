// A limit on huge pages by control group. The pool has pages and mmap succeeds; the limit bites when
// a page is allocated, which is a SIGBUS for whoever touches the memory first.
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "fabric/errors.hpp"
#include "huge_pool.hpp"
#include "sigbus.hpp"

using namespace fabric;
using namespace fabric::soak;

namespace {

constexpr std::uint64_t kCapacity = 8ULL << 20;

bool write_to(const std::string& file, const std::string& value) {
  std::ofstream out(file);
  out << value << std::flush;
  return out.good();
}

bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

// The controller as version 1 or 2 has it, in a mount namespace of this process alone. Both files:
// what may be allocated, and what may be reserved.
class HugeGroup {
 public:
  explicit HugeGroup(const char* name) {
    if (unshare(CLONE_NEWNS) != 0) return;
    if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return;
    root_ = "/tmp/fabric-cgroup-" + std::to_string(getpid());
    mkdir(root_.c_str(), 0700);
    if (mount("none", root_.c_str(), "cgroup", 0, "hugetlb") == 0) {
      group_ = root_ + "/" + name;
      limit_ = "/hugetlb.2MB.limit_in_bytes";
      reserve_ = "/hugetlb.2MB.rsvd.limit_in_bytes";
    } else if (mount("none", root_.c_str(), "cgroup2", 0, nullptr) == 0) {
      write_to(root_ + "/cgroup.subtree_control", "+hugetlb");
      group_ = root_ + "/" + name;
      limit_ = "/hugetlb.2MB.max";
      reserve_ = "/hugetlb.2MB.rsvd.max";
    }
    if (!group_.empty()) mkdir(group_.c_str(), 0700);
  }
  ~HugeGroup() {
    if (root_.empty()) return;
    write_to(root_ + "/cgroup.procs", std::to_string(getpid()));
    if (!group_.empty()) rmdir(group_.c_str());
    // The kernel keeps a removed group for a moment; unmounted before, its hierarchy would stay.
    for (int i = 0; i < 1000 && groups_in_kernel() > 1; i++) usleep(1000);
    umount(root_.c_str());
    rmdir(root_.c_str());
  }

  bool enter(bool reserving, std::uint64_t bytes) const {
    const std::string file = group_ + (reserving ? reserve_ : limit_);
    return exists(file) && write_to(file, std::to_string(bytes)) &&
           write_to(group_ + "/cgroup.procs", std::to_string(getpid()));
  }

 private:
  static int groups_in_kernel() {
    std::ifstream table("/proc/cgroups");
    std::string name;
    int hierarchy = 0;
    int groups = 0;
    while (table >> name) {
      if (name == "hugetlb") table >> hierarchy >> groups;
    }
    return hierarchy == 0 ? 0 : groups;
  }

  std::string root_;
  std::string group_;
  std::string limit_;
  std::string reserve_;
};

// Demanding huge pages is an error that names the group; trying falls back.
Outcome under_limit(bool reserving) {
  const HugeGroup group(reserving ? "fabric-reserve" : "fabric-limit");
  if (!group.enter(reserving, kHugePageBytes)) return Outcome::NotPossible;
  try {
    (void)RingMemory::create(kCapacity, HugePages::Require, 0);
    return Outcome::Wrong;
  } catch (const RingFailure& failure) {
    const std::string text = failure.what();
    if (text.find("control group") == std::string::npos) return Outcome::Wrong;
  }
  const RingMemory memory = RingMemory::create(kCapacity, HugePages::Try, 0);
  return memory.pages() != Pages::Huge && touches_all(memory) ? Outcome::Sound : Outcome::Wrong;
}

void expect_sound(bool reserving) {
  const HugePool pool = HugePool::with(16);
  if (HugePool::available() < static_cast<std::int64_t>(kCapacity / kHugePageBytes)) {
    GTEST_SKIP() << "this host has no huge pages, nor the right to reserve some";
  }
  const Outcome outcome = in_child([&] { return under_limit(reserving); });
  if (outcome == Outcome::NotPossible) GTEST_SKIP() << "no right to a control group for huge pages";
  EXPECT_EQ(outcome, Outcome::Sound);
}

TEST(RingControlGroup, ALimitOnPagesIsAnErrorOrAFallbackAndNoSignal) { expect_sound(false); }

TEST(RingControlGroup, ALimitOnReservationsIsAnErrorOrAFallbackAndNoSignal) { expect_sound(true); }

}  // namespace

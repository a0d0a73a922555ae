// Whether a reader that found nothing should look on for a moment before it goes to sleep. To wake a
// process on another core costs this side 20 to 40 us and the writer a system call, so between the
// records of a stream it is cheaper to stay. On one core with the writer, or between batches that
// are milliseconds apart, it is time lost: after each miss in a row twice as many chances pass
// unused, so that what is lost becomes kMomentNs for each kSkippedMax calls at worst.
#pragma once

#include <cstdint>

namespace fabric {

class Linger {
 public:
  static constexpr std::int64_t kMomentNs = 50'000;
  static constexpr std::uint32_t kSkippedMax = 63;

  // Asked each time that nothing is there; if true, one of the two below must follow.
  bool worth_it() {
    if (to_skip_ == 0) return true;
    to_skip_--;
    return false;
  }
  void paid() { skipped_ = 0; }
  void missed() {
    skipped_ = skipped_ >= kSkippedMax / 2 ? kSkippedMax : 2 * skipped_ + 1;
    to_skip_ = skipped_;
  }

 private:
  std::uint32_t skipped_ = 0;  // after the last miss
  std::uint32_t to_skip_ = 0;
};

}  // namespace fabric

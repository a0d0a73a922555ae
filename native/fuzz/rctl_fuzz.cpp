// The broker's half against a page that holds anything: whatever the consumer writes there and
// whenever, no claim leaves the memory, and none overlaps one that is still being written. Space of
// a record goes out again only after a read position past it was published.
#include <list>

#include "fabric/ring_writer.hpp"
#include "input.hpp"
#include "small_ring.hpp"

using namespace fabric;
using namespace fabric::fuzz;

namespace {

constexpr std::uint64_t kCapacity = SmallRing::kCapacity;

enum Step { kClaim, kCommit, kAbort, kHonest, kNear, kAny, kTaken, kStat, kArm, kSteps };

struct Open {
  Claim claim;
  std::uint8_t mark;  // what its payload was filled with
};

class Broker {
 public:
  explicit Broker(std::uint64_t start)
      : ring_(start), writer_({ring_.data, kCapacity, &ring_.wctl, &ring_.rctl, -1}, start) {}

  void step(Input& input) {
    switch (input.take<std::uint8_t>() % kSteps) {
      case kClaim:
        claim(input.take<std::uint16_t>() % 600);
        break;
      case kCommit:
        settle(input, true);
        break;
      case kAbort:
        settle(input, false);
        break;
      case kHonest:
        // As far as was claimed, which may be farther than what is committed.
        ring_.rctl.read_position = ring_.wctl.tail - (input.take<std::uint8_t>() % 80) * 64;
        break;
      case kNear:
        ring_.rctl.read_position = ring_.rctl.read_position + input.take<std::int16_t>();
        break;
      case kAny:
        ring_.rctl.read_position = input.take<std::uint64_t>();
        ring_.rctl.waiting = input.take<std::uint32_t>();
        break;
      case kTaken:
        ring_.rctl.taken_position = input.take<std::uint64_t>();
        (void)writer_.taken(ring_.wctl.tail);
        break;
      case kStat:
        require(writer_.stat().used_bytes <= kCapacity);
        break;
      case kArm:
        if (writer_.arm_space(input.take<std::uint64_t>())) writer_.disarm_space();
        break;
    }
    if (was_poisoned_) require(writer_.poisoned());
    was_poisoned_ = writer_.poisoned();
  }

  void check_open() {
    for (const Open& one : open_) {
      for (std::uint32_t i = 0; i < one.claim.payload_bytes(); i++) {
        require(one.claim.payload()[i] == std::byte{one.mark});
      }
    }
  }

 private:
  void claim(std::uint64_t bytes) {
    ClaimResult result = writer_.claim(bytes);
    auto* claimed = std::get_if<Claim>(&result);
    if (!claimed) return;
    require(!was_poisoned_);
    const std::uint64_t offset = claimed->position() & (kCapacity - 1);
    require(offset % kLineBytes == 0);
    require(offset + (claimed->end() - claimed->position()) <= kCapacity);
    require(claimed->payload_bytes() == bytes);
    const std::uint8_t mark = next_mark_++;
    std::memset(claimed->payload(), mark, bytes);
    open_.push_back({std::move(*claimed), mark});
  }

  void settle(Input& input, bool commit) {
    if (open_.empty()) return;
    auto picked = open_.begin();
    std::advance(picked, input.take<std::uint8_t>() % open_.size());
    if (commit) {
      picked->claim.commit(1);
    } else {
      picked->claim.abort();
    }
    open_.erase(picked);
  }

  SmallRing ring_;
  RingWriter writer_;
  std::list<Open> open_;
  std::uint8_t next_mark_ = 1;
  bool was_poisoned_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  Broker broker(input.take<std::uint64_t>() & ~63ULL);
  while (!input.empty()) {
    broker.step(input);
    broker.check_open();
  }
  return 0;
}

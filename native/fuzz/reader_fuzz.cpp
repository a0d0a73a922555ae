// The reader over a data region that holds anything: whatever header stands at its position, it
// hands out bytes of the region or nothing, and its own positions only grow.
#include <vector>

#include "fabric/ring_reader.hpp"
#include "input.hpp"
#include "small_ring.hpp"

using namespace fabric;
using namespace fabric::fuzz;

namespace {

constexpr std::uint64_t kCapacity = SmallRing::kCapacity;

enum Step { kHeader, kBytes, kNext, kTake, kRelease, kState, kSteps };

// A header with a stamp that the reader accepts and lengths that nobody checked.
void put_header(SmallRing& ring, std::uint64_t position, Input& input) {
  auto& header = *reinterpret_cast<RecordHeader*>(ring.at(position & ~63ULL));
  header.record_length = input.take<std::uint32_t>();
  header.payload_length = input.take<std::uint32_t>();
  const auto state = static_cast<State>(1 + input.take<std::uint8_t>() % 3);
  header.stamp = stamp_of(position, state, ring.wctl.key);
}

void put_bytes(SmallRing& ring, Input& input) {
  const std::size_t offset = input.take<std::uint16_t>() % kCapacity;
  const auto bytes = input.run(1 + input.take<std::uint8_t>() % 64);
  const std::size_t room = kCapacity - offset;
  const std::size_t count = bytes.size() < room ? bytes.size() : room;
  if (count > 0) std::memcpy(ring.data + offset, bytes.data(), count);
}

std::uint64_t sum_of(const Record& record) {
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < record.payload_bytes; i++) {
    sum += static_cast<std::uint64_t>(record.payload[i]);
  }
  return sum;
}

void check_inside(const SmallRing& ring, const Record& record) {
  require(record.payload >= ring.data + kHeaderBytes);
  require(record.payload + record.payload_bytes <= ring.data + kCapacity);
  volatile std::uint64_t sum = sum_of(record);  // every byte is there
  (void)sum;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const std::uint64_t start = input.take<std::uint64_t>() & ~63ULL;
  SmallRing ring(start);
  RingReader reader({ring.data, kCapacity, &ring.wctl, &ring.rctl, -1});
  std::vector<std::uint64_t> seen;
  std::uint64_t published = start;
  while (!input.empty()) {
    const std::uint8_t step = input.take<std::uint8_t>();
    const auto pick = [&] {
      const std::uint8_t draw = input.take<std::uint8_t>();
      return seen.empty() || draw > 240 ? input.take<std::uint64_t>() : seen[draw % seen.size()];
    };
    switch (step % kSteps) {
      case kHeader:
        put_header(ring, reader.position(), input);
        break;
      case kBytes:
        put_bytes(ring, input);
        break;
      case kNext: {
        const NextResult result = reader.next();
        const auto* record = std::get_if<Record>(&result);
        if (!record) break;
        check_inside(ring, *record);
        seen.push_back(record->position);
        break;
      }
      case kTake:
        (void)reader.take(pick());
        break;
      case kRelease:
        (void)reader.release(pick());
        break;
      case kState:
        ring.wctl.space_waiting = input.take<std::uint64_t>();
        break;
    }
    const std::uint64_t now = ring.rctl.read_position;
    require(static_cast<std::int64_t>(now - published) >= 0);
    require(static_cast<std::int64_t>(reader.position() - now) >= 0);
    require(static_cast<std::int64_t>(ring.rctl.taken_position.load() - now) >= 0);
    published = now;
  }
  return 0;
}

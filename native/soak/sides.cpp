#include "sides.hpp"

#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

#include "fabric/ring_writer.hpp"
#include "fabric/wake.hpp"
#include "killing.hpp"
#include "payload.hpp"
#include "processes.hpp"
#include "reading.hpp"

namespace fabric::soak {

namespace {

// The smallest ring: it wraps and fills often.
constexpr std::uint64_t kCapacity = kCapacityMinBytes;
constexpr int kLostAfterMs = 120'000;

class Broker {
 public:
  Broker(const Side& side, Ledger& ledger, RingMemory& memory)
      : side_(side),
        ledger_(ledger),
        memory_(memory),
        ring_({memory.data(), kCapacity, memory.writer(), memory.reader(), memory.data_pipe()}, 0) {}

  int run() {
    std::vector<std::thread> threads;
    for (std::uint64_t writer = 0; writer < side_.writers; writer++) {
      threads.emplace_back([this, writer] { write_until_alone(writer); });
    }
    for (std::thread& thread : threads) thread.join();
    // A consumer that died at whatever place never looks like one that lies.
    const bool sound = !ring_.poisoned() && !ring_.stat().poisoned && !lost_;
    if (!sound) std::fprintf(stderr, "the broker's ring is not sound after its consumer died\n");
    return sound ? 0 : 1;
  }

 private:
  void write_until_alone(std::uint64_t writer) {
    std::uint64_t random = side_.seed * 2862933555777941757ULL + writer + 1;
    std::uint64_t number = 0;
    while (!lost_) {
      const std::uint64_t bytes =
          kPayloadMin + next_random(random) % (ring_.max_payload_bytes() - kPayloadMin + 1);
      ClaimResult result = ring_.claim(bytes, static_cast<std::uint32_t>(writer));
      if (const auto* refused = std::get_if<Refused>(&result)) {
        if (refused->why != Refusal::Full || !wait_for_space(refused->read_position)) return;
        continue;
      }
      auto& claim = std::get<Claim>(result);
      if (next_random(random) % 16 == 0) continue;  // aborted
      fill_payload(claim.payload(), bytes, writer, number);
      ledger_.begun[writer] = number + 1;
      claim.commit(number);
      ledger_.committed[writer] = ++number;
      if (peer_is_gone(side_.socket)) return;
    }
  }

  // False: the consumer is gone and will free nothing any more.
  bool wait_for_space(std::uint64_t seen) {
    if (peer_is_gone(side_.socket)) return false;
    if (side_.writers > 1) {
      std::this_thread::yield();
      return true;
    }
    if (!ring_.arm_space(seen)) return true;
    if (!wait_readable({memory_.space_pipe(), side_.socket}, kLostAfterMs)) lost_ = true;
    drain_pipe(memory_.space_pipe());
    ring_.disarm_space();
    return true;
  }

  const Side& side_;
  Ledger& ledger_;
  RingMemory& memory_;
  RingWriter ring_;
  std::atomic<bool> lost_{false};
};

// With one writer it is exact: what was committed came, and nothing that was never begun. Several
// may hide records behind a claim that died open.
bool matches(const Reading& reading, const Side& side, const Ledger& ledger) {
  for (std::size_t writer = 0; writer < side.writers; writer++) {
    const std::uint64_t came = reading.count(writer);
    const std::uint64_t least = side.writers == 1 ? ledger.committed[writer].load() : 0;
    if (came >= least && came <= ledger.begun[writer]) continue;
    std::fprintf(stderr, "writer %zu: %llu records came, %llu committed, %llu begun\n", writer,
                 static_cast<unsigned long long>(came),
                 static_cast<unsigned long long>(ledger.committed[writer].load()),
                 static_cast<unsigned long long>(ledger.begun[writer].load()));
    return false;
  }
  return true;
}

}  // namespace

int broker_side(const Side& side, Ledger& ledger) {
  RingMemory memory = RingMemory::create(kCapacity, HugePages::Try, 0);
  send_ring(side.socket, memory);
  if (side.point) kill_at(side.point, side.pass, &ledger);
  Broker broker(side, ledger, memory);
  return broker.run();
}

int consumer_side(const Side& side, Ledger& ledger) {
  const RingAttachment memory = receive_ring(side.socket);
  if (side.point) kill_at(side.point, side.pass, &ledger);
  RingReader ring({memory.data(), memory.capacity(), memory.writer(), memory.reader(),
                   memory.space_pipe()});
  Reading reading(ring, side.seed);
  while (!peer_is_gone(side.socket)) {
    if (!reading.drain()) return 1;
    if (side.futex) {
      // The kernel wakes nobody for a peer that died: a reader that sleeps so looks now and then.
      (void)ring.wait(100, 20'000'000);
      continue;
    }
    if (!wait_readable({memory.data_pipe(), side.socket}, kLostAfterMs)) return 1;
    drain_pipe(memory.data_pipe());
  }
  if (!reading.drain() || !matches(reading, side, ledger)) return 1;
  ledger.read = reading.records();
  return 0;
}

}  // namespace fabric::soak

// Writer threads against a reader process, for a time or for a number of records. Each record must
// arrive once, whole, in claim order per writer.
//
//   ring_stress [--writers 3] [--records 0] [--seconds 5] [--start 0] [--capacity 8388608] [--futex 0]
//
// --records counts all writers together and ends the run; else --seconds does. The reader sleeps on
// its pipe, or with --futex 1 on the futex; it and a writer that is alone sleep without any time
// limit that a lost wake-up could hide behind.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "fabric/ring_writer.hpp"
#include "fabric/wake.hpp"
#include "options.hpp"
#include "payload.hpp"
#include "processes.hpp"
#include "reading.hpp"

using namespace fabric;
using namespace fabric::soak;

namespace {

using Clock = std::chrono::steady_clock;

// Longer than any pause of a busy machine: a wake-up that takes this long was lost.
constexpr int kLostAfterMs = 120'000;

struct Plan {
  std::uint64_t writers;
  std::uint64_t records;
  std::uint64_t seconds;
  std::uint64_t start;
  std::uint64_t capacity;
  bool futex;
};

struct Totals {
  std::uint64_t committed[kWritersMax];
};

int lost(const char* side) {
  std::fprintf(stderr, "%s: no wake-up in %d s\n", side, kLostAfterMs / 1000);
  return 1;
}

bool all_came(const Reading& reading, const Totals& totals) {
  bool all = true;
  for (std::size_t writer = 0; writer < kWritersMax; writer++) {
    if (reading.count(writer) == totals.committed[writer]) continue;
    std::fprintf(stderr, "writer %zu: %llu of %llu records came\n", writer,
                 static_cast<unsigned long long>(reading.count(writer)),
                 static_cast<unsigned long long>(totals.committed[writer]));
    all = false;
  }
  return all;
}

// False: no wake-up came.
bool sleep_until_more(const Plan& plan, const RingAttachment& memory, RingReader& ring, int socket) {
  if (plan.futex) {
    // The record that wakes for the totals may have been passed over already; they come before it.
    if (wait_readable({socket}, 0)) return true;
    // Also woken for a record behind one that is not committed yet: then it looks and sleeps again.
    const auto began = Clock::now();
    return ring.wait(200, kLostAfterMs * 1'000'000LL) ||
           Clock::now() - began < std::chrono::milliseconds(kLostAfterMs);
  }
  if (!wait_readable({memory.data_pipe(), socket}, kLostAfterMs)) return false;
  drain_pipe(memory.data_pipe());
  return true;
}

int reader_main(const Plan& plan, int socket) {
  const RingAttachment memory = receive_ring(socket);
  RingReader ring({memory.data(), memory.capacity(), memory.writer(), memory.reader(),
                   memory.space_pipe()});
  Reading reading(ring, 7);
  Totals totals{};
  for (bool ended = false; !ended;) {
    if (!reading.drain()) return 1;
    if (!sleep_until_more(plan, memory, ring, socket)) return lost("reader");
    // The totals come when all is committed; what is in the ring then is all there is.
    ended = wait_readable({socket}, 0) &&
            read(socket, &totals, sizeof totals) == static_cast<ssize_t>(sizeof totals);
  }
  if (!reading.drain() || !all_came(reading, totals)) return 1;
  const std::uint64_t report[] = {reading.records(), reading.bytes()};
  return write(socket, report, sizeof report) == sizeof report ? 0 : 1;
}

class Writing {
 public:
  Writing(const Plan& plan, int socket, RingMemory& memory)
      : plan_(plan),
        socket_(socket),
        memory_(memory),
        ring_({memory.data(), plan.capacity, memory.writer(), memory.reader(), memory.data_pipe()},
              plan.start),
        until_(Clock::now() + std::chrono::seconds(plan.seconds)) {}

  bool run(Totals& totals) {
    std::vector<std::thread> threads;
    for (std::uint64_t writer = 0; writer < plan_.writers; writer++) {
      threads.emplace_back([&, writer] { totals.committed[writer] = write_all(writer); });
    }
    for (std::thread& thread : threads) thread.join();
    return !failed_;
  }

  RingStat stat() { return ring_.stat(); }

  // A record that is none: whoever sleeps on the futex looks at the socket.
  void wake() { (void)ring_.claim(0); }

 private:
  std::uint64_t write_all(std::uint64_t writer) {
    std::uint64_t random = 88172645463325252ULL + writer;
    std::uint64_t number = 0;
    const std::uint64_t share =
        plan_.records / plan_.writers + (writer < plan_.records % plan_.writers);
    while (!failed_ && (plan_.records > 0 ? number < share : Clock::now() < until_)) {
      const std::uint64_t bytes = mixed_size(random, ring_.max_payload_bytes());
      ClaimResult result = ring_.claim(bytes, static_cast<std::uint32_t>(writer));
      if (const auto* refused = std::get_if<Refused>(&result)) {
        if (refused->why != Refusal::Full) failed_ = true;
        wait_for_space(refused->read_position);
        continue;
      }
      auto& claim = std::get<Claim>(result);
      if (next_random(random) % 64 == 0) continue;  // its destructor aborts
      fill_payload(claim.payload(), bytes, writer, number);
      claim.commit(number++);
    }
    return number;
  }

  void wait_for_space(std::uint64_t seen) {
    if (peer_is_gone(socket_)) failed_ = true;
    if (plan_.writers > 1) {
      // One wait at a time is what the ring promises; who writes with others looks again.
      std::this_thread::yield();
      return;
    }
    if (!ring_.arm_space(seen)) return;
    if (!wait_readable({memory_.space_pipe(), socket_}, kLostAfterMs)) failed_ = lost("writer");
    drain_pipe(memory_.space_pipe());
    ring_.disarm_space();
  }

  const Plan plan_;
  const int socket_;
  RingMemory& memory_;
  RingWriter ring_;
  const Clock::time_point until_;
  std::atomic<bool> failed_{false};
};

int run(const Plan& plan) {
  Pair sockets = socket_pair();
  Child reader = Child::start([&] {
    sockets.broker.reset();
    return reader_main(plan, sockets.consumer.get());
  });
  sockets.consumer.reset();
  RingMemory memory = RingMemory::create(plan.capacity, HugePages::Try, plan.start);
  send_ring(sockets.broker.get(), memory);

  const auto began = Clock::now();
  Writing writing(plan, sockets.broker.get(), memory);
  Totals totals{};
  const bool written = writing.run(totals);
  std::uint64_t report[2] = {};
  const bool sent = write(sockets.broker.get(), &totals, sizeof totals) ==
                    static_cast<ssize_t>(sizeof totals);
  if (plan.futex) writing.wake();
  const bool told = sent && read(sockets.broker.get(), report, sizeof report) == sizeof report;
  const bool read_all = reader.wait() == 0 && told;
  const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
  const RingStat stat = writing.stat();
  const bool empty = stat.used_bytes == 0 && !stat.poisoned;
  std::printf("%llu records, %.2f GB in %.1f s; %llu writer(s) from position %llu on %s; "
              "%llu tail gaps, %llu times full, %llu lost claims, %llu wake-ups, %llu aborts%s\n",
              static_cast<unsigned long long>(report[0]), static_cast<double>(report[1]) / 1e9,
              seconds, static_cast<unsigned long long>(plan.writers),
              static_cast<unsigned long long>(plan.start), memory.reason().c_str(),
              static_cast<unsigned long long>(stat.pads), static_cast<unsigned long long>(stat.fulls),
              static_cast<unsigned long long>(stat.claim_retries),
              static_cast<unsigned long long>(stat.wakeups),
              static_cast<unsigned long long>(stat.aborts), empty ? "" : "; NOT EMPTY at the end");
  return written && read_all && empty ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  signal(SIGPIPE, SIG_IGN);
  const Options options(count, words);
  const Plan plan{.writers = options.get("--writers", 3),
                  .records = options.get("--records", 0),
                  .seconds = options.get("--seconds", 5),
                  .start = options.get("--start", 0),
                  .capacity = options.get("--capacity", 8ULL << 20),
                  .futex = options.get("--futex", 0) != 0};
  if (plan.writers < 1 || plan.writers > kWritersMax) return 2;
  try {
    return run(plan);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
}

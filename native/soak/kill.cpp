// kill -9 at named places of either side, and restarts in a row.
//
//   ring_kill points [--passes 4]     every test point of both sides, at several passes of each
//   ring_kill restart [--rounds 20]   a new broker and a new consumer each round; one of them, or
//                                     both, dies at a random place
//
// After each death the other side says whether what it sees is sound; at the end this process has as
// many descriptors open as before. The last line is "N passed, N failed".
#include <cstdio>
#include <cstring>
#include <string>

#include "ledger.hpp"
#include "killing.hpp"
#include "options.hpp"
#include "payload.hpp"
#include "processes.hpp"
#include "sides.hpp"

using namespace fabric::soak;

namespace {

constexpr int kKilled = 128 + 9;

struct Tally {
  int passed = 0;
  int failed = 0;

  void count(bool ok, const std::string& what) {
    (ok ? passed : failed)++;
    if (!ok) std::printf("FAILED %s\n", what.c_str());
  }
};

struct Codes {
  int broker;
  int consumer;
};

Codes run_pair(Side broker, Side consumer, Ledger& ledger) {
  ledger.clear();
  Pair sockets = socket_pair();
  Child reading = Child::start([&] {
    sockets.broker.reset();
    consumer.socket = sockets.consumer.get();
    return consumer_side(consumer, ledger);
  });
  Child writing = Child::start([&] {
    sockets.consumer.reset();
    broker.socket = sockets.broker.get();
    return broker_side(broker, ledger);
  });
  sockets.broker.reset();
  sockets.consumer.reset();
  const int broker_code = writing.wait();
  return {broker_code, reading.wait()};
}

// The wakes, fulls and gaps that some points need are rare, so their later passes are nearer.
std::uint64_t pass_of(const char* point, std::uint64_t round) {
  const bool rare = std::strstr(point, "gap") || std::strstr(point, "full") ||
                    std::strstr(point, "wake") || std::strstr(point, "armed") ||
                    std::strstr(point, "wait");
  return rare ? 1 + round : 1 + round * round * 7;
}

bool needs_futex(const char* point) {
  return std::strstr(point, "wait.") || std::strcmp(point, "wake.word_changed") == 0;
}

void kill_broker_at(const char* point, std::uint64_t round, Ledger& ledger, Tally& tally) {
  // A writer alone passes none of the places where another got in its way.
  const std::uint64_t writers = round % 2 == 0 ? 1 : 3;
  // Only a writer alone waits by arm_space().
  const bool alone = std::strcmp(point, "space.armed") == 0;
  const Side broker{-1, alone ? 1 : writers, round + 1, point, pass_of(point, round)};
  const Side consumer{-1, broker.writers, round + 1, nullptr, 0, needs_futex(point)};
  const Codes codes = run_pair(broker, consumer, ledger);
  const bool ok = codes.broker == kKilled && ledger.killed_at_point && codes.consumer == 0;
  tally.count(ok, std::string("broker killed at ") + point + ": broker " +
                      std::to_string(codes.broker) + ", consumer " +
                      std::to_string(codes.consumer));
}

void kill_consumer_at(const char* point, std::uint64_t round, Ledger& ledger, Tally& tally) {
  const std::uint64_t writers = round % 2 == 0 ? 1 : 3;
  const Side broker{-1, writers, round + 1, nullptr, 0};
  const Side consumer{-1,    writers,        round + 1, point, pass_of(point, round),
                      needs_futex(point)};
  const Codes codes = run_pair(broker, consumer, ledger);
  const bool ok = codes.consumer == kKilled && ledger.killed_at_point && codes.broker == 0;
  tally.count(ok, std::string("consumer killed at ") + point + ": broker " +
                      std::to_string(codes.broker) + ", consumer " +
                      std::to_string(codes.consumer));
}

void points(const Options& options, Ledger& ledger, Tally& tally) {
  const std::uint64_t passes = options.get("--passes", 4);
  for (std::uint64_t round = 0; round < passes; round++) {
    for (const char* point : kBrokerPoints) kill_broker_at(point, round, ledger, tally);
    for (const char* point : kConsumerPoints) kill_consumer_at(point, round, ledger, tally);
  }
}

void restart(const Options& options, Ledger& ledger, Tally& tally) {
  const std::uint64_t rounds = options.get("--rounds", 20);
  std::uint64_t random = 0x2545f4914f6cdd1d;
  for (std::uint64_t round = 0; round < rounds; round++) {
    const std::uint64_t who = round % 3;  // the broker, the consumer, both
    const std::uint64_t writers = 1 + next_random(random) % 3;
    Side broker{-1, writers, round + 1, who != 1 ? "" : nullptr, 1 + next_random(random) % 400};
    Side consumer{-1, writers, round + 1, who != 0 ? "" : nullptr, 1 + next_random(random) % 60,
                  next_random(random) % 2 == 0};
    const Codes codes = run_pair(broker, consumer, ledger);
    // Of two that are to die the first to do so may keep the other from its place.
    const bool broker_ok = codes.broker == kKilled || (who != 0 && codes.broker == 0);
    const bool consumer_ok = codes.consumer == kKilled || (who != 1 && codes.consumer == 0);
    tally.count(broker_ok && consumer_ok && ledger.killed_at_point,
                "round " + std::to_string(round) + ": broker " + std::to_string(codes.broker) +
                    ", consumer " + std::to_string(codes.consumer));
  }
}

}  // namespace

int main(int count, char** words) {
  const Options options(count, words);
  const std::string mode = count > 1 ? words[1] : "";
  if (mode != "points" && mode != "restart") {
    std::fprintf(stderr, "ring_kill points|restart\n");
    return 2;
  }
  Ledger* ledger = Ledger::create();
  if (!ledger) return 3;
  Tally tally;
  const int before = open_descriptors();
  if (mode == "points") {
    points(options, *ledger, tally);
  } else {
    restart(options, *ledger, tally);
  }
  tally.count(open_descriptors() == before, "descriptors were left open");
  std::printf("%d passed, %d failed\n", tally.passed, tally.failed);
  return tally.failed == 0 ? 0 : 1;
}

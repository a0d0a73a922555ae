// Writers and reader as threads over one mapping, so that ThreadSanitizer sees both.
#include <atomic>
#include <thread>

#include "ring_fixture.hpp"

using namespace fabric;
using fabric::test::Ring;

namespace {

std::uint64_t next_random(std::uint64_t& state) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

std::uint64_t checksum(const std::byte* bytes, std::size_t count) {
  std::uint64_t sum = 0xcbf29ce484222325;
  for (std::size_t i = 0; i < count; i++) {
    sum = (sum ^ static_cast<std::uint64_t>(bytes[i])) * 0x100000001b3;
  }
  return sum;
}

// Payload: checksum of the rest, writer, its own running number, then noise.
void fill(Claim& claim, std::uint64_t writer, std::uint64_t number, std::uint64_t& random) {
  std::byte* payload = claim.payload();
  std::memcpy(payload + 8, &writer, 8);
  std::memcpy(payload + 16, &number, 8);
  for (std::size_t i = 24; i < claim.payload_bytes(); i++) {
    payload[i] = static_cast<std::byte>(next_random(random));
  }
  const std::uint64_t sum = checksum(payload + 8, claim.payload_bytes() - 8);
  std::memcpy(payload, &sum, 8);
}

void write_all(Ring& ring, std::uint64_t writer, std::uint64_t records) {
  std::uint64_t random = 88172645463325252ULL + writer;
  for (std::uint64_t number = 0; number < records;) {
    const std::uint64_t length = 24 + next_random(random) % (ring.writer->max_payload_bytes() - 23);
    ClaimResult result = ring.writer->claim(length, static_cast<std::uint32_t>(writer));
    auto* claim = std::get_if<Claim>(&result);
    if (!claim) {
      ASSERT_EQ(std::get<Refused>(result).why, Refusal::Full);
      std::this_thread::yield();
      continue;
    }
    if (next_random(random) % 8 == 0) continue;  // its destructor aborts
    fill(*claim, writer, number, random);
    claim->commit(number++);
  }
}

void check(const Record& record, std::vector<std::uint64_t>& expected) {
  std::uint64_t sum = 0;
  std::uint64_t writer = 0;
  std::uint64_t number = 0;
  std::memcpy(&sum, record.payload, 8);
  std::memcpy(&writer, record.payload + 8, 8);
  std::memcpy(&number, record.payload + 16, 8);
  ASSERT_EQ(sum, checksum(record.payload + 8, record.payload_bytes - 8));
  ASSERT_LT(writer, expected.size());
  ASSERT_EQ(record.writer, writer);
  ASSERT_EQ(number, expected[writer]++) << "each writer's records stay in order";
  ASSERT_EQ(record.batch_sequence, number);
}

void run(std::uint64_t start, std::uint64_t writers, std::uint64_t records) {
  Ring ring(4096, start);
  std::vector<std::thread> threads;
  for (std::uint64_t writer = 0; writer < writers; writer++) {
    threads.emplace_back([&ring, writer, records] { write_all(ring, writer, records); });
  }
  std::vector<std::uint64_t> expected(writers, 0);
  std::vector<std::uint64_t> held;
  std::uint64_t random = 7;
  for (std::uint64_t seen = 0; seen < writers * records && !testing::Test::HasFailure();) {
    const NextResult result = ring.reader->next();
    if (const auto* record = std::get_if<Record>(&result)) {
      check(*record, expected);
      held.push_back(record->position);
      seen++;
    } else {
      ASSERT_TRUE(std::holds_alternative<NothingYet>(result));
      std::this_thread::yield();
    }
    // Out of order, and never so many that the writers starve.
    const bool now = held.size() > 3 || std::holds_alternative<NothingYet>(result);
    while (now && !held.empty()) {
      const std::size_t pick = next_random(random) % held.size();
      ring.reader->take(held[pick]);
      ring.reader->release(held[pick]);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(pick));
    }
  }
  for (const std::uint64_t position : held) ring.reader->release(position);
  for (std::thread& thread : threads) thread.join();
  const RingStat stat = ring.writer->stat();
  EXPECT_FALSE(stat.poisoned);
  EXPECT_LE(stat.used_bytes, 4096u);
}

TEST(Threads, ThreeWritersAndAReaderAgreeOnEveryByte) { run(0, 3, 10'000); }

TEST(Threads, AgreeAcrossThirtyTwoBits) { run((1ULL << 32) - 64, 3, 2'000); }

TEST(Threads, AgreeAcrossTheSignOfThePosition) { run((1ULL << 63) - 64, 3, 2'000); }

TEST(Threads, AgreeWithOneWriter) { run(0, 1, 10'000); }

TEST(Threads, AskingForStatusDisturbsNobody) {
  Ring ring(4096);
  std::atomic<bool> done{false};
  std::thread watching([&] {
    while (!done) {
      const RingStat stat = ring.writer->stat();
      ASSERT_LE(stat.used_bytes, 4096u);
      ASSERT_FALSE(stat.poisoned);
      (void)ring.writer->taken_position();
    }
  });
  std::thread writing([&] { write_all(ring, 0, 5'000); });
  std::vector<std::uint64_t> expected(1, 0);
  while (expected[0] < 5'000 && !testing::Test::HasFailure()) {
    const NextResult result = ring.reader->next();
    if (const auto* record = std::get_if<Record>(&result)) {
      check(*record, expected);
      ring.reader->release(record->position);
    }
  }
  writing.join();
  done = true;
  watching.join();
}

}  // namespace

#include "ring_fixture.hpp"

using namespace fabric;
using fabric::test::Ring;

namespace {

constexpr std::uint64_t kCapacity = 4096;

TEST(Reader, ReadsThePayloadInPlace) {
  Ring ring(kCapacity);
  Claim claim = ring.claim(5);
  std::memcpy(claim.payload(), "hello", 5);
  claim.commit(77);
  const Record record = ring.read();
  EXPECT_EQ(record.batch_sequence, 77u);
  EXPECT_EQ(record.payload, ring.data + 64);
  EXPECT_EQ(record.payload_bytes, 5u);
  EXPECT_EQ(std::memcmp(record.payload, "hello", 5), 0);
  EXPECT_GT(record.time_ns, 0u);
}

TEST(Reader, FindsNothingInMemoryThatWasNeverWritten) {
  Ring ring(kCapacity);
  EXPECT_TRUE(ring.nothing());
}

TEST(Reader, NeverTakesAHeaderOfAnEarlierLap) {
  Ring ring(kCapacity);
  for (int lap = 0; lap < 3; lap++) {
    for (int i = 0; i < 64; i++) {
      ring.put(1, static_cast<std::uint64_t>(lap * 64 + i));
      EXPECT_EQ(ring.read().batch_sequence, static_cast<std::uint64_t>(lap * 64 + i));
      EXPECT_TRUE(ring.nothing()) << "the old header one line further";
      EXPECT_TRUE(ring.reader->release(ring.wctl->tail - 64));
    }
  }
}

TEST(Reader, NeverTakesPayloadBytesForAHeaderWithoutTheKey) {
  Ring ring(kCapacity);
  // Payload of one lap that looks like a committed header at the place of the next lap's header.
  Claim claim = ring.claim(448);
  for (std::uint64_t line = 0; line < 7; line++) {
    const std::uint64_t position = kCapacity + 64 + line * 64;
    const std::uint64_t forged = stamp_of(position, State::Committed, 0);
    std::memcpy(claim.payload() + line * 64, &forged, 8);
  }
  claim.commit(1);
  ring.read_and_release();
  while (ring.wctl->tail < kCapacity) {
    ring.put(1);
    ring.read_and_release();
  }
  ring.put(1);
  ring.read_and_release();
  EXPECT_TRUE(ring.nothing());
}

TEST(Reader, GivesSpaceBackOnlyOverTheReleasedPrefix) {
  Ring ring(kCapacity);
  for (int i = 0; i < 4; i++) ring.put(2);
  std::uint64_t at[4];
  for (std::uint64_t& position : at) position = ring.read().position;
  EXPECT_EQ(ring.reader->held(), 4u);
  EXPECT_TRUE(ring.reader->release(at[2]));
  EXPECT_TRUE(ring.reader->release(at[1]));
  EXPECT_EQ(ring.rctl->read_position, 0u);
  EXPECT_EQ(ring.reader->held(), 2u);
  EXPECT_TRUE(ring.reader->release(at[0]));
  EXPECT_EQ(ring.rctl->read_position, at[3]);
  EXPECT_TRUE(ring.reader->release(at[3]));
  EXPECT_EQ(ring.rctl->read_position, ring.wctl->tail);
}

TEST(Reader, ReleasesARecordOnce) {
  Ring ring(kCapacity);
  ring.put(1);
  ring.put(1);
  const Record first = ring.read();
  const Record second = ring.read();
  EXPECT_TRUE(ring.reader->release(second.position));
  EXPECT_FALSE(ring.reader->release(second.position));
  EXPECT_TRUE(ring.reader->release(first.position));
  EXPECT_FALSE(ring.reader->release(first.position));
  EXPECT_FALSE(ring.reader->take(first.position));
  EXPECT_EQ(ring.reader->held(), 0u);
}

TEST(Reader, TakesNoPositionThatIsNotARecord) {
  Ring ring(kCapacity);
  ring.put(2);
  (void)ring.read();
  EXPECT_FALSE(ring.reader->release(64));
  EXPECT_FALSE(ring.reader->release(128));
  EXPECT_FALSE(ring.reader->release(-64ULL));
  EXPECT_EQ(ring.reader->held(), 1u);
}

TEST(Reader, StopsAtAHeaderWithAnImpossibleLength) {
  struct Bad {
    std::uint32_t record;
    std::uint32_t payload;
  };
  for (const Bad bad : {Bad{0, 0}, Bad{32, 0}, Bad{65, 0}, Bad{8192, 0}, Bad{128, 65},
                        Bad{4160, 0}, Bad{0xffffffc0, 0}, Bad{64, 0xffffffff}}) {
    Ring ring(kCapacity);
    ring.put(2);
    ring.header(0).record_length = bad.record;
    ring.header(0).payload_length = bad.payload;
    const NextResult result = ring.reader->next();
    ASSERT_TRUE(std::holds_alternative<RecordInvalid>(result)) << bad.record;
    EXPECT_EQ(ring.reader->held(), 0u);
    EXPECT_EQ(ring.rctl->read_position, 0u);
  }
}

TEST(Reader, StopsAtARecordThatReachesOverTheEnd) {
  Ring ring(kCapacity, kCapacity - 128);
  ring.put(2);
  ring.header(kCapacity - 128).record_length = 192;
  EXPECT_TRUE(std::holds_alternative<RecordInvalid>(ring.reader->next()));
}

TEST(Reader, StartsWhereTheReadPositionStands) {
  Ring ring(kCapacity);
  ring.put(1, 1);
  ring.put(1, 2);
  ring.read_and_release();
  RingReader next({ring.data, kCapacity, ring.wctl.get(), ring.rctl.get(), -1});
  EXPECT_EQ(std::get<Record>(next.next()).batch_sequence, 2u);
}

}  // namespace

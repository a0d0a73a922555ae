// A ring in ordinary memory: tests set its cursors, read its bytes and play a lying consumer.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "fabric/ring_reader.hpp"
#include "fabric/ring_writer.hpp"

namespace fabric::test {

class Ring {
 public:
  explicit Ring(std::uint64_t capacity, std::uint64_t start = 0, int data_pipe = -1,
                int space_pipe = -1)
      : capacity(capacity),
        data(static_cast<std::byte*>(::operator new(capacity, std::align_val_t(64)))),
        wctl(std::make_unique<WriterControl>()),
        rctl(std::make_unique<ReaderControl>()) {
    // Not zeros: nothing may depend on what lies in fresh memory.
    std::memset(data, 0xa5, capacity);
    wctl->key = 0x9e3779b97f4a7c15;
    wctl->tail = start;
    rctl->read_position = start;
    rctl->taken_position = start;
    writer = std::make_unique<RingWriter>(
        RingWriter::Parts{data, capacity, wctl.get(), rctl.get(), data_pipe}, start);
    reader = std::make_unique<RingReader>(
        RingReader::Parts{data, capacity, wctl.get(), rctl.get(), space_pipe});
  }
  ~Ring() { ::operator delete(data, std::align_val_t(64)); }

  std::uint64_t offset(std::uint64_t position) const { return position & (capacity - 1); }
  RecordHeader& header(std::uint64_t position) {
    return *reinterpret_cast<RecordHeader*>(data + offset(position));
  }
  bool is(std::uint64_t position, State state) {
    return header(position).stamp == stamp_of(position, state, wctl->key);
  }

  Claim claim(std::uint64_t payload) {
    ClaimResult result = writer->claim(payload);
    EXPECT_TRUE(std::holds_alternative<Claim>(result));
    return std::move(std::get<Claim>(result));
  }
  Refusal refusal(std::uint64_t payload) {
    const ClaimResult result = writer->claim(payload);
    EXPECT_TRUE(std::holds_alternative<Refused>(result));
    return std::get<Refused>(result).why;
  }
  bool is_full(std::uint64_t payload) { return refusal(payload) == Refusal::Full; }

  // A record of `lines` cache lines, header included.
  std::uint64_t put(std::uint64_t lines, std::uint64_t sequence = 0) {
    Claim claimed = claim((lines - 1) * 64);
    claimed.commit(sequence);
    return claimed.position();
  }
  Record read() {
    const NextResult result = reader->next();
    EXPECT_TRUE(std::holds_alternative<Record>(result));
    return std::get<Record>(result);
  }
  bool nothing() { return std::holds_alternative<NothingYet>(reader->next()); }
  void read_and_release() { EXPECT_TRUE(reader->release(read().position)); }

  const std::uint64_t capacity;
  std::byte* const data;
  std::unique_ptr<WriterControl> wctl;
  std::unique_ptr<ReaderControl> rctl;
  std::unique_ptr<RingWriter> writer;
  std::unique_ptr<RingReader> reader;
};

}  // namespace fabric::test

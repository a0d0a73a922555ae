// The broker's half of the ring: claim, commit, abort, and the check of what the reader writes.
// Works on bytes that it did not allocate, so tests set cursors and read bytes back.
#pragma once

#include <atomic>
#include <cstdint>
#include <variant>

#include "fabric/layout.hpp"

namespace fabric {

class RingWriter;

// Space that one writer owns until it commits or aborts. Move-only; destroying it aborts, so an
// exception between claim and commit cannot leave a record that blocks all later ones.
class Claim {
 public:
  Claim(Claim&& other) noexcept;
  Claim& operator=(Claim&& other) noexcept;
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;
  ~Claim();

  std::uint64_t position() const { return position_; }
  std::uint64_t end() const { return end_; }
  std::byte* payload() const;
  std::uint32_t payload_bytes() const { return payload_bytes_; }

  // One thread at a time for one claim; several claims may be settled at once and in any order.
  void commit(std::uint64_t batch_sequence);
  void abort();

 private:
  friend class RingWriter;
  Claim(RingWriter* ring, std::uint64_t position, std::uint64_t end, std::uint32_t payload_bytes)
      : ring_(ring), position_(position), end_(end), payload_bytes_(payload_bytes) {}

  RingWriter* ring_;  // null once settled or moved from
  std::uint64_t position_;
  std::uint64_t end_;
  std::uint32_t payload_bytes_;
};

enum class Refusal { Full, TooLarge, Poisoned, Closed };

struct Refused {
  Refusal why;
  // For Full: the read position that left no room. A wait for space compares with exactly this one;
  // a newer one would hide the release that made room.
  std::uint64_t read_position;
};

// A refusal can't be mistaken for a place to write to.
using ClaimResult = std::variant<Claim, Refused>;

// A look at a live ring; each number is right, but they are not of one moment.
struct RingStat {
  std::uint64_t claimed_position;    // the tail
  std::uint64_t committed_position;  // all records before it are settled
  std::uint64_t taken_position;      // the last accepted ones of the reader
  std::uint64_t read_position;
  std::uint64_t used_bytes;  // claimed and not yet released; between 0 and the capacity
  std::uint64_t gap_bytes;   // given up as tail gaps since the start
  std::uint64_t claims;
  std::uint64_t claim_retries;
  std::uint64_t fulls;
  std::uint64_t pads;
  std::uint64_t aborts;
  std::uint64_t wakeups;
  bool poisoned;
};

class RingWriter {
 public:
  struct Parts {
    std::byte* data;  // 64-aligned
    std::uint64_t capacity;
    WriterControl* writer;
    ReaderControl* reader;
    int data_pipe;  // write end, or -1: wake-ups are then only counted
  };

  // `parts.writer` must hold key and tail; the read position is taken as it stands in `start`.
  RingWriter(const Parts& parts, std::uint64_t start);
  RingWriter(const RingWriter&) = delete;
  RingWriter& operator=(const RingWriter&) = delete;

  // Any thread, many at once, lock-free: a failed exchange means that another writer moved on.
  [[nodiscard]] ClaimResult claim(std::uint64_t payload_bytes, std::uint32_t writer_id = 0);

  // Any thread. Has the reader taken everything before `end`? Checked like the read position.
  bool taken(std::uint64_t end) { return static_cast<std::int64_t>(taken_position() - end) >= 0; }
  // The last accepted taken position, after a look at the reader's.
  std::uint64_t taken_position();

  // Any thread. False if the reader already released something since `seen`: then claim again
  // instead of waiting. A wait is good for one signal, and that may come for a release which claim()
  // saw already: who is woken and finds nothing arms again. A wait ends by disarm_space().
  [[nodiscard]] bool arm_space(std::uint64_t seen);
  void disarm_space();
  // Has the (unchecked) read position left `seen`? The next claim checks it.
  bool space_moved(std::uint64_t seen) const;

  // Any thread. No claim succeeds afterwards; open claims may still be settled.
  void close();
  bool closed() const { return closed_.load(std::memory_order_acquire); }
  // The last accepted read position.
  std::uint64_t read_position() const { return head_.load(std::memory_order_acquire); }
  bool poisoned() const { return poisoned_.load(std::memory_order_acquire); }
  RingStat stat();

  std::uint64_t capacity() const { return capacity_; }
  std::uint64_t max_payload_bytes() const { return max_record_bytes(capacity_) - kHeaderBytes; }

 private:
  friend class Claim;
  enum class Attempt { Claimed, Full, Lost, Poisoned };

  struct Space {
    std::uint64_t head;
    std::uint64_t tail;
    std::uint64_t pad;
    std::uint64_t need;
  };

  Attempt try_claim(Space& space);
  Attempt claim_gap_only(const Space& space);
  Space look(std::uint64_t need) const;
  bool fits(const Space& space, std::uint64_t bytes) const;
  bool refresh_head();
  bool within_committed(std::uint64_t from, std::uint64_t to);
  void advance_committed();
  void publish_gap(std::uint64_t position, std::uint64_t bytes);
  void begin_record(std::uint64_t position, const Space& space, std::uint32_t payload_bytes,
                    std::uint32_t writer_id);
  void settle(const Claim& claim, State state);
  void wake_reader();
  void poison();

  std::byte* at(std::uint64_t position) const { return data_ + (position & (capacity_ - 1)); }
  RecordHeader& header(std::uint64_t position) const {
    return *reinterpret_cast<RecordHeader*>(at(position));
  }

  std::byte* const data_;
  const std::uint64_t capacity_;
  WriterControl* const writer_;
  ReaderControl* const reader_;
  const std::uint64_t key_;  // a private copy: it is read on every record
  const int data_pipe_;

  // Private to the broker: a consumer can neither read nor move them.
  alignas(kHotBytes) std::atomic<std::uint64_t> head_;       // last accepted read position
  alignas(kHotBytes) std::atomic<std::uint64_t> committed_;  // all records before it are settled
  alignas(kHotBytes) std::atomic<std::uint64_t> taken_;      // last accepted taken position
  std::atomic<std::uint64_t> space_waits_{0};
  std::atomic<bool> poisoned_{false};
  std::atomic<bool> closed_{false};
};

}  // namespace fabric

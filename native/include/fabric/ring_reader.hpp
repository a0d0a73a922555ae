// The consumer's half of the ring: finds committed records in order, hands out their payload in
// place, and gives space back in whatever order the records are released. Not thread-safe: one
// thread owns a reader. Works on bytes that it did not allocate and writes only to rctl.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <variant>

#include "fabric/layout.hpp"
#include "fabric/linger.hpp"

namespace fabric {

struct Record {
  std::uint64_t position;  // names the record to take() and release()
  std::uint64_t batch_sequence;
  const std::byte* payload;
  std::uint32_t payload_bytes;
  std::uint32_t writer;
  std::uint64_t time_ns;
};

// No committed record now. The waiting flag stands, so the next commit sends a wake-up.
struct NothingYet {};
// A header that no correct broker writes. The reader stays where it is.
struct RecordInvalid {
  std::uint64_t position;
};

using NextResult = std::variant<Record, NothingYet, RecordInvalid>;

class RingReader {
 public:
  struct Parts {
    const std::byte* data;
    std::uint64_t capacity;
    const WriterControl* writer;
    ReaderControl* reader;
    int space_pipe;  // write end, or -1: wake-ups are then only counted
  };

  // Starts at the read position that stands in rctl.
  explicit RingReader(const Parts& parts);
  RingReader(const RingReader&) = delete;
  RingReader& operator=(const RingReader&) = delete;

  // The record stays held, and its bytes unchanged, until release().
  [[nodiscard]] NextResult next();
  // For a caller that sleeps after NothingYet: to be called before next(). Comes back as soon as
  // there is something for it, and after at most Linger::kMomentNs.
  void linger();
  // Is there something for next()? Spins `spins` times, then sleeps at most `timeout_ns`; it may
  // sleep shorter, so callers loop. On false the waiting flag stands, as after NothingYet.
  [[nodiscard]] bool wait(std::uint32_t spins, std::int64_t timeout_ns);
  // Both false if no record at this position is held. Releasing takes as well.
  bool take(std::uint64_t position);
  bool release(std::uint64_t position);

  // Handed out and not yet released.
  std::size_t held() const { return held_count_; }
  std::uint64_t position() const { return position_; }
  std::uint64_t space_signals() const { return space_signals_; }

 private:
  struct Held {
    std::uint64_t position;
    std::uint64_t end;
    bool taken;
    bool released;
  };

  enum class Found { Committed, Pad, Nothing };

  Found look(std::memory_order order) const;
  Found look_before_sleep();
  std::optional<std::uint64_t> checked_length(const RecordHeader& header) const;
  std::deque<Held>::iterator from(std::uint64_t position);
  Held* find(std::uint64_t position);
  void publish_taken();
  void publish_released();
  void wake_writer();

  const std::byte* at(std::uint64_t position) const { return data_ + (position & (capacity_ - 1)); }

  const std::byte* const data_;
  const std::uint64_t capacity_;
  const WriterControl* const writer_;
  ReaderControl* const reader_;
  const std::uint64_t key_;
  const int space_pipe_;

  std::uint64_t position_;         // of the record that next() looks for
  std::uint64_t taken_position_;   // as published
  std::uint64_t signalled_ = 0;    // the last wait for space that was answered
  std::uint64_t space_signals_ = 0;
  std::size_t held_count_ = 0;
  Linger lingering_;
  // In claim order, from the read position to position_; gaps and aborted records are in it as
  // released. At most capacity/64 entries, for that many records fit.
  std::deque<Held> held_;
};

}  // namespace fabric

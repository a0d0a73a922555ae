#include "fabric/ring_reader.hpp"

#include <time.h>

#include <algorithm>

#include "fabric/test_point.hpp"
#include "fabric/wake.hpp"

namespace fabric {

namespace {
constexpr auto acquire = std::memory_order_acquire;
constexpr auto relaxed = std::memory_order_relaxed;
constexpr auto release_order = std::memory_order_release;
constexpr auto seq_cst = std::memory_order_seq_cst;

std::int64_t distance(std::uint64_t from, std::uint64_t to) {
  return static_cast<std::int64_t>(to - from);
}

std::int64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}
}  // namespace

RingReader::RingReader(const Parts& parts)
    : data_(parts.data),
      capacity_(parts.capacity),
      writer_(parts.writer),
      reader_(parts.reader),
      key_(parts.writer->key),
      space_pipe_(parts.space_pipe),
      // relaxed: no one else writes it, and it was set before the descriptors were passed.
      position_(parts.reader->read_position.load(relaxed)),
      taken_position_(position_) {}

// The stamp at our own position either is exactly what it must be, or nothing is there yet. The
// tail is never read: one line of shared memory is touched for each record.
RingReader::Found RingReader::look(std::memory_order order) const {
  // acquire pairs with the stamp's store in settle() and publish_gap(): header and payload are there.
  const std::uint64_t stamp = stamp_ref(at(position_)).load(order);
  if (stamp == stamp_of(position_, State::Committed, key_)) return Found::Committed;
  if (stamp == stamp_of(position_, State::Pad, key_)) return Found::Pad;
  return Found::Nothing;
}

RingReader::Found RingReader::look_before_sleep() {
  // seq_cst store, then seq_cst load: pairs with the exchange of the stamp and the load of
  // `waiting` on the writer's side (settle(), wake_reader()). One of the two sees the other.
  reader_->waiting.store(kWaitsOnPipe, seq_cst);
  FABRIC_TEST_POINT("next.waiting_set");
  const Found found = look(seq_cst);
  // relaxed: a writer that still sees it sends one signal too many, no more.
  if (found != Found::Nothing) reader_->waiting.store(kAwake, relaxed);
  return found;
}

// Copied once by the caller's load, then checked. Nothing of the header is trusted to lie inside.
std::optional<std::uint64_t> RingReader::checked_length(const RecordHeader& header) const {
  const std::uint64_t length = header.record_length;
  const std::uint64_t offset = position_ & (capacity_ - 1);
  if (length < kHeaderBytes || length % kLineBytes != 0) return std::nullopt;
  if (length > capacity_ - offset) return std::nullopt;
  if (header.payload_length > length - kHeaderBytes) return std::nullopt;
  return length;
}

NextResult RingReader::next() {
  for (;;) {
    Found found = look(acquire);
    if (found == Found::Nothing) found = look_before_sleep();
    if (found == Found::Nothing) return NothingYet{};

    const RecordHeader header = *reinterpret_cast<const RecordHeader*>(at(position_));
    const auto length = checked_length(header);
    if (!length) return RecordInvalid{position_};
    const std::uint64_t position = position_;
    const bool gap = found == Found::Pad;
    held_.push_back(Held{position, position + *length, gap, gap});
    position_ += *length;
    FABRIC_TEST_POINT("next.passed");
    if (!gap) {
      held_count_++;
      return Record{position,         header.batch_sequence,
                    at(position) + kHeaderBytes, header.payload_length,
                    header.writer,    header.time_ns};
    }
    // Nobody releases a gap: with nothing held before it, its space goes back at once.
    publish_taken();
    publish_released();
  }
}

namespace {

// Leaves the core's other thread its turn; a plain loop would also leave the loop late.
void pause_spinning() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

void RingReader::linger() {
  if (look(acquire) != Found::Nothing || !lingering_.worth_it()) return;
  const std::int64_t end = now_ns() + Linger::kMomentNs;
  do {
    pause_spinning();
    if (look(acquire) != Found::Nothing) return lingering_.paid();
  } while (now_ns() < end);
  lingering_.missed();
}

bool RingReader::wait(std::uint32_t spins, std::int64_t timeout_ns) {
  for (std::uint32_t spin = 0; spin < spins; spin++) {
    if (look(acquire) != Found::Nothing) return true;
    pause_spinning();
  }
  // relaxed, but before the announcement: its store releases this load to the writer's exchange of
  // `waiting`, and the writer adds to the word after that. So whoever took this announcement away
  // changes the word from `seen`, and the kernel, which compares it as it puts us to sleep under the
  // lock that the wake-up takes, either refuses or is found by the wake-up.
  const std::uint32_t seen = writer_->data_wakes.load(relaxed);
  // seq_cst store, then seq_cst load: as in look_before_sleep().
  reader_->waiting.store(kWaitsOnFutex, seq_cst);
  FABRIC_TEST_POINT("wait.waiting_set");
  if (look(seq_cst) == Found::Nothing) futex_wait(writer_->data_wakes, seen, timeout_ns);
  FABRIC_TEST_POINT("wait.woken");
  if (look(acquire) == Found::Nothing) return look_before_sleep() != Found::Nothing;
  // relaxed: at worst one wake-up too many.
  reader_->waiting.store(kAwake, relaxed);
  return true;
}

std::deque<RingReader::Held>::iterator RingReader::from(std::uint64_t position) {
  return std::lower_bound(
      held_.begin(), held_.end(), position,
      [](const Held& held, std::uint64_t at) { return distance(held.position, at) > 0; });
}

RingReader::Held* RingReader::find(std::uint64_t position) {
  const auto found = from(position);
  if (found == held_.end() || found->position != position || found->released) return nullptr;
  return &*found;
}

bool RingReader::take(std::uint64_t position) {
  Held* held = find(position);
  if (!held) return false;
  held->taken = true;
  publish_taken();
  return true;
}

bool RingReader::release(std::uint64_t position) {
  Held* held = find(position);
  if (!held) return false;
  held->taken = true;
  held->released = true;
  held_count_--;
  publish_taken();
  publish_released();
  return true;
}

void RingReader::publish_taken() {
  std::uint64_t reached = taken_position_;
  for (auto held = from(reached); held != held_.end() && held->taken; ++held) reached = held->end;
  if (reached == taken_position_) return;
  taken_position_ = reached;
  // release: pairs with the acquire load in RingWriter::taken(); whoever sees a record as taken may
  // count on every read position published before.
  reader_->taken_position.store(reached, release_order);
}

void RingReader::publish_released() {
  std::uint64_t reached = 0;
  bool moved = false;
  while (!held_.empty() && held_.front().released) {
    reached = held_.front().end;
    moved = true;
    held_.pop_front();
  }
  if (!moved) return;
  FABRIC_TEST_POINT("release.before_store");
  // seq_cst: release keeps our reads of the freed lines before it (pairs with the acquire load in
  // refresh_head()); the total order pairs with arm_space(), see wake_writer().
  reader_->read_position.store(reached, seq_cst);
  FABRIC_TEST_POINT("release.stored");
  wake_writer();
}

void RingReader::wake_writer() {
  // seq_cst: after the store of the read position, or a writer that goes to wait could be missed.
  const std::uint64_t wait = writer_->space_waiting.load(seq_cst);
  // The flag can't be cleared from here, so each numbered wait is answered once.
  if (wait == 0 || wait == signalled_) return;
  signalled_ = wait;
  space_signals_++;
  if (space_pipe_ >= 0) (void)signal_pipe(space_pipe_);
}

}  // namespace fabric

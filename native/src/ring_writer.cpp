#include "fabric/ring_writer.hpp"

#include <time.h>

#include <cassert>
#include <utility>

#include "fabric/test_point.hpp"
#include "fabric/wake.hpp"

namespace fabric {

namespace {

constexpr auto acquire = std::memory_order_acquire;
constexpr auto acq_rel = std::memory_order_acq_rel;
constexpr auto release = std::memory_order_release;
constexpr auto relaxed = std::memory_order_relaxed;
constexpr auto seq_cst = std::memory_order_seq_cst;

// Positions only grow and may pass 2^63, so they are compared by their difference.
std::int64_t distance(std::uint64_t from, std::uint64_t to) {
  return static_cast<std::int64_t>(to - from);
}

// relaxed: counters are read for status only and order nothing.
void count(std::atomic<std::uint64_t>& counter, std::uint64_t by = 1) {
  counter.fetch_add(by, relaxed);
}

std::uint64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000ULL +
         static_cast<std::uint64_t>(time.tv_nsec);
}

// relaxed: the stamp that follows publishes it. Atomic because look_at() may read a place that is
// being filled again; what it reads then is dropped.
void set_length(RecordHeader& header, std::uint64_t bytes) {
  __atomic_store_n(&header.record_length, static_cast<std::uint32_t>(bytes), __ATOMIC_RELAXED);
}

// Raises `cell` to `value`, never lowers it: several threads accept positions at once.
// acq_rel: whoever reads the raised value also sees what made it valid.
void raise(std::atomic<std::uint64_t>& cell, std::uint64_t value) {
  std::uint64_t seen = cell.load(acquire);
  while (distance(seen, value) > 0 && !cell.compare_exchange_weak(seen, value, acq_rel, acquire)) {
  }
}

}  // namespace

Claim::Claim(Claim&& other) noexcept
    : ring_(std::exchange(other.ring_, nullptr)),
      position_(other.position_),
      end_(other.end_),
      payload_bytes_(other.payload_bytes_) {}

Claim& Claim::operator=(Claim&& other) noexcept {
  if (this == &other) return *this;
  abort();
  ring_ = std::exchange(other.ring_, nullptr);
  position_ = other.position_;
  end_ = other.end_;
  payload_bytes_ = other.payload_bytes_;
  return *this;
}

Claim::~Claim() { abort(); }

std::byte* Claim::payload() const { return ring_->at(position_) + kHeaderBytes; }

void Claim::commit(std::uint64_t batch_sequence) {
  assert(ring_ && "a claim is settled once");
  RecordHeader& header = ring_->header(position_);
  header.batch_sequence = batch_sequence;
  header.time_ns = now_ns();
  std::exchange(ring_, nullptr)->settle(*this, State::Committed);
}

void Claim::abort() {
  if (!ring_) return;
  RingWriter* ring = std::exchange(ring_, nullptr);
  count(ring->writer_->counters.aborts);
  ring->settle(*this, State::Pad);
}

RingWriter::RingWriter(const Parts& parts, std::uint64_t start)
    : data_(parts.data),
      capacity_(parts.capacity),
      writer_(parts.writer),
      reader_(parts.reader),
      key_(parts.writer->key),
      data_pipe_(parts.data_pipe),
      head_(start),
      committed_(start),
      taken_(start) {
  assert((capacity_ & (capacity_ - 1)) == 0 && start % kLineBytes == 0);
}

ClaimResult RingWriter::claim(std::uint64_t payload_bytes, std::uint32_t writer_id) {
  // Compared before rounding up, which a length near 2^64 would wrap.
  if (payload_bytes > max_payload_bytes()) return Refused{Refusal::TooLarge, 0};
  const std::uint64_t need = record_bytes(payload_bytes);
  for (;;) {
    if (closed_.load(acquire)) return Refused{Refusal::Closed, 0};  // pairs with close()
    if (poisoned()) return Refused{Refusal::Poisoned, 0};
    // Gap and need are computed anew on each try: after a lost exchange the gap is another one.
    Space space = look(need);
    switch (try_claim(space)) {
      case Attempt::Claimed: {
        const std::uint64_t position = space.tail + space.pad;
        const auto length = static_cast<std::uint32_t>(payload_bytes);
        begin_record(position, space, length, writer_id);
        count(writer_->counters.claims);
        return Claim(this, position, position + need, length);
      }
      case Attempt::Full:
        count(writer_->counters.fulls);
        return Refused{Refusal::Full, space.head};
      case Attempt::Poisoned:
        return Refused{Refusal::Poisoned, 0};
      case Attempt::Lost:
        count(writer_->counters.claim_retries);
    }
  }
}

RingWriter::Space RingWriter::look(std::uint64_t need) const {
  Space space{};
  // Head before tail: in the other order the head may have passed the tail that was read, and the
  // difference below wraps. acquire pairs with raise(): the lines before head are free.
  space.head = head_.load(acquire);
  FABRIC_TEST_POINT("claim.head_loaded");
  // acquire pairs with the exchange in try_claim(): what earlier claims did to these lines is done.
  space.tail = writer_->tail.load(acquire);
  space.need = need;
  const std::uint64_t to_end = capacity_ - (space.tail & (capacity_ - 1));
  space.pad = need > to_end ? to_end : 0;
  return space;
}

// The one inequality. The gap is inside the sum, so it covers both the length and the place.
bool RingWriter::fits(const Space& space, std::uint64_t bytes) const {
  return distance(space.head, space.tail + bytes) <=
         static_cast<std::int64_t>(capacity_ - kGuardBytes);
}

RingWriter::Attempt RingWriter::try_claim(Space& space) {
  if (!fits(space, space.pad + space.need)) {
    if (!refresh_head()) return Attempt::Poisoned;
    space.head = head_.load(acquire);  // pairs with raise()
    if (!fits(space, space.pad + space.need)) return claim_gap_only(space);
  }
  FABRIC_TEST_POINT("claim.before_exchange");
  std::uint64_t expected = space.tail;
  // acq_rel: the new owner sees what was done to these lines, and the next claimer sees this claim.
  // Relaxed would let the free space underflow on a weakly ordered CPU.
  const bool won = writer_->tail.compare_exchange_strong(
      expected, space.tail + space.pad + space.need, acq_rel, acquire);
  if (!won) return Attempt::Lost;
  FABRIC_TEST_POINT("claim.won");
  if (space.pad > 0) publish_gap(space.tail, space.pad);
  return Attempt::Claimed;
}

// Full where the record stands, yet the gap alone fits: give up the gap now. Else a reader that
// frees only the front could leave the writer stuck before the end for ever.
RingWriter::Attempt RingWriter::claim_gap_only(const Space& space) {
  std::uint64_t expected = space.tail;
  if (space.pad == 0 || !fits(space, space.pad)) {
    FABRIC_TEST_POINT("full.before_answer");
    // Full is an answer about this tail; if another writer moved it, the answer may have changed.
    return writer_->tail.load(acquire) == expected ? Attempt::Full : Attempt::Lost;
  }
  FABRIC_TEST_POINT("gap.before_exchange");
  // acq_rel, acquire: as in try_claim().
  if (!writer_->tail.compare_exchange_strong(expected, space.tail + space.pad, acq_rel, acquire)) {
    return Attempt::Lost;
  }
  publish_gap(space.tail, space.pad);
  wake_reader();
  return Attempt::Full;
}

// A gap is a multiple of 64 and never 0, so its header always fits.
void RingWriter::publish_gap(std::uint64_t position, std::uint64_t bytes) {
  count(writer_->counters.pads);
  count(writer_->counters.gap_bytes, bytes);
  RecordHeader& gap = header(position);
  set_length(gap, bytes);
  gap.payload_length = 0;
  FABRIC_TEST_POINT("gap.before_stamp");
  // seq_cst (with release in it): the reader's acquire load sees the length; and the store is
  // ordered before the load of `waiting` in wake_reader().
  stamp_ref(at(position)).store(stamp_of(position, State::Pad, key_), seq_cst);
  advance_committed();
}

void RingWriter::begin_record(std::uint64_t position, const Space& space,
                              std::uint32_t payload_bytes, std::uint32_t writer_id) {
  RecordHeader& record = header(position);
  set_length(record, space.need);
  record.payload_length = payload_bytes;
  record.batch_sequence = 0;
  record.kind = 0;
  record.flags = 0;
  record.writer = writer_id;
  record.time_ns = 0;
  record.checksum = 0;
  for (std::uint32_t& word : record.reserved) word = 0;
  // release: pairs with the acquire loads of the stamp by the reader and by advance_committed().
  stamp_ref(at(position)).store(stamp_of(position, State::Busy, key_), release);
  FABRIC_TEST_POINT("claim.busy");
}

void RingWriter::settle(const Claim& claim, State state) {
  FABRIC_TEST_POINT("settle.before_exchange");
  std::uint64_t expected = stamp_of(claim.position_, State::Busy, key_);
  // An exchange from BUSY and not a store: should anything else ever settle the record, one wins.
  // seq_cst: release publishes payload and header to the reader's acquire load of the stamp; the
  // total order with `waiting` makes sure that a reader which goes to sleep sees this record or is
  // seen asleep by wake_reader().
  const bool settled = stamp_ref(at(claim.position_))
                           .compare_exchange_strong(expected,
                                                    stamp_of(claim.position_, state, key_), seq_cst,
                                                    relaxed);
  // A lying reader frees nothing beyond `committed`, so this place is the claim's also when the ring
  // is poisoned meanwhile.
  assert(settled && "only its owner settles a claim");
  (void)settled;
  FABRIC_TEST_POINT("settle.exchanged");
  advance_committed();
  wake_reader();
}

namespace {

struct Settled {
  std::uint64_t stamp;
  std::uint64_t length;
};

// Read like a seqlock: a thread that was held up here may look at a place that others have passed
// and filled again, with a payload even. What it read then counts for nothing, for its exchange of
// `committed` fails. ThreadSanitizer knows only the two accesses, not that the value is dropped.
__attribute__((no_sanitize("thread"), noinline)) Settled look_at(std::byte* record) {
  RecordHeader& header = *reinterpret_cast<RecordHeader*>(record);
  Settled seen{};
  // acquire pairs with settle() and publish_gap(): the length belongs to this stamp.
  seen.stamp = __atomic_load_n(&header.stamp, __ATOMIC_ACQUIRE);
  seen.length = __atomic_load_n(&header.record_length, __ATOMIC_RELAXED);
  return seen;
}

}  // namespace

// Moves `committed` over what is settled. Done by whoever settles a record, and by whoever finds a
// read position beyond `committed`: the writer that settled the record may not have got here yet.
void RingWriter::advance_committed() {
  for (;;) {
    // acquire pairs with the exchange below.
    std::uint64_t position = committed_.load(acquire);
    // Never past what was claimed, whatever bytes lie there. acquire pairs with try_claim().
    if (position == writer_->tail.load(acquire)) return;
    const Settled seen = look_at(at(position));
    FABRIC_TEST_POINT("committed.looked");
    if (seen.stamp != stamp_of(position, State::Committed, key_) &&
        seen.stamp != stamp_of(position, State::Pad, key_)) {
      if (committed_.load(acquire) == position) return;
      continue;
    }
    // acq_rel: release keeps the two loads before it, so a stale look cannot succeed.
    committed_.compare_exchange_strong(position, position + seen.length, acq_rel, acquire);
  }
}

// `to` is a private copy of a word that the consumer writes. One comparison covers both bounds: a
// position before `from` becomes a huge difference.
bool RingWriter::within_committed(std::uint64_t from, std::uint64_t to) {
  if (to % kLineBytes != 0) return false;
  if (to - from <= committed_.load(acquire) - from) return true;
  advance_committed();
  return to - from <= committed_.load(acquire) - from;
}

bool RingWriter::refresh_head() {
  // The accepted position first: an honest read position loaded after it cannot be behind it, even
  // while other threads accept newer ones. acquire pairs with raise().
  const std::uint64_t accepted = head_.load(acquire);
  FABRIC_TEST_POINT("head.accepted_loaded");
  // Loaded once; the check and the use are on this copy. acquire pairs with the reader's store in
  // publish_released(): its last reads of the freed lines come before our writes.
  const std::uint64_t read = reader_->read_position.load(acquire);
  FABRIC_TEST_POINT("head.read_loaded");
  // Checked against `committed` and not the tail, or a liar could free a record in the writing.
  if (!within_committed(accepted, read)) {
    poison();
    return false;
  }
  raise(head_, read);
  return true;
}

std::uint64_t RingWriter::taken_position() {
  const std::uint64_t accepted = taken_.load(acquire);  // pairs with raise()
  if (poisoned()) return accepted;
  // acquire pairs with the reader's store in publish_taken(). Loaded once, checked on the copy.
  const std::uint64_t now = reader_->taken_position.load(acquire);
  if (!within_committed(accepted, now)) {
    poison();
    return accepted;
  }
  raise(taken_, now);
  return now;
}

void RingWriter::wake_reader() {
  // seq_cst, both: pairs with the store of `waiting` and the load of the stamp in the reader's
  // next() and wait(). With acquire and release both sides could miss each other and the reader sleep on.
  if (reader_->waiting.load(seq_cst) == kAwake) return;
  FABRIC_TEST_POINT("wake.waiting_seen");
  // One writer of a group sends the signal for all.
  const std::uint32_t sleeps = reader_->waiting.exchange(kAwake, seq_cst);
  if (sleeps == kAwake) return;
  count(writer_->counters.wakeups);
  if (sleeps == kWaitsOnFutex) {
    // After the exchange, which acquired the reader's announcement and so its load of the word in
    // wait(): a reader that is not asleep yet finds the word changed. release keeps the exchange
    // before it. The kernel orders it before its search for a sleeper.
    writer_->data_wakes.fetch_add(1, release);
    FABRIC_TEST_POINT("wake.word_changed");
    futex_wake(writer_->data_wakes);
    return;
  }
  // A peer that is gone is the control socket's business.
  if (data_pipe_ >= 0) (void)signal_pipe(data_pipe_);
}

bool RingWriter::arm_space(std::uint64_t seen) {
  const std::uint64_t number = space_waits_.fetch_add(1, relaxed) + 1;
  // seq_cst store, then seq_cst load: pairs with the reader's store of the read position and load
  // of `space_waiting` in publish_released().
  writer_->space_waiting.store(number, seq_cst);
  FABRIC_TEST_POINT("space.armed");
  if (reader_->read_position.load(seq_cst) == seen) return true;
  disarm_space();
  return false;
}

// relaxed: at worst the reader sends one signal too many.
void RingWriter::disarm_space() { writer_->space_waiting.store(0, relaxed); }

bool RingWriter::space_moved(std::uint64_t seen) const {
  return reader_->read_position.load(acquire) != seen;  // pairs with publish_released()
}

void RingWriter::poison() {
  poisoned_.store(true, release);  // pairs with poisoned()
  writer_->state.store(RingState::Poisoned, release);
}

void RingWriter::close() {
  closed_.store(true, release);  // pairs with claim()
  if (!poisoned()) writer_->state.store(RingState::Closed, release);
}

RingStat RingWriter::stat() {
  if (!poisoned()) (void)refresh_head();
  const std::uint64_t head = head_.load(acquire);
  const std::uint64_t tail = writer_->tail.load(acquire);  // after head, so never behind it
  const Counters& counters = writer_->counters;
  return RingStat{.claimed_position = tail,
                  .committed_position = committed_.load(acquire),
                  .taken_position = taken_position(),
                  .read_position = head,
                  .used_bytes = tail - head > capacity_ ? capacity_ : tail - head,
                  .gap_bytes = counters.gap_bytes.load(relaxed),
                  .claims = counters.claims.load(relaxed),
                  .claim_retries = counters.claim_retries.load(relaxed),
                  .fulls = counters.fulls.load(relaxed),
                  .pads = counters.pads.load(relaxed),
                  .aborts = counters.aborts.load(relaxed),
                  .wakeups = counters.wakeups.load(relaxed),
                  .poisoned = poisoned()};
}

}  // namespace fabric

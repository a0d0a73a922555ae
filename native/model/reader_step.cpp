// RingReader::next(), take(), release() and the consumer's sleep on the data pipe; the liar; the
// watchdog of a mutant.
#include <stdexcept>

#include "step.hpp"

namespace fabric::model {

using At = ReaderAt;

bool ReaderStep::run() {
  switch (me_.at) {
    case At::Decide:
      return decide();
    case At::Look:
      look(load(stamp_at(me_.position), orders().look_stamp));
      if (me_.found != Stamp::Nothing) me_.at = At::Header;
      else if (config().sleep != Sleep::Never) me_.at = At::WaitingSet;
      else found_nothing();
      return true;
    case At::Header:
      copy_header();
      return true;
    case At::TakenStore:
      store(kTakenPosition, me_.publish_taken, orders().taken_position_store);
      published_taken();
      return true;
    case At::ReadPositionStore:
      state_.ghost.released = me_.publish_read;
      store(kReadPosition, me_.publish_read, orders().read_position_store);
      published_read();
      return true;
    case At::SpaceWaitingLoad:
      me_.wait = load(kSpaceWaiting, orders().space_waiting_load);
      if (me_.wait == 0 || me_.wait == me_.signalled) go_on();
      else me_.at = At::SpaceSignal;
      return true;
    case At::SpaceSignal:
      note("signal space");
      me_.signalled = me_.wait;
      state_.shared.space_pipe = 1;
      go_on();
      return true;
    default:
      return run_sleep();
  }
}

// look_before_sleep() and wait(): without a deadline, so that a lost wake-up can't heal itself.
bool ReaderStep::run_sleep() {
  const Location stamp = stamp_at(me_.position);
  switch (me_.at) {
    case At::WaitingSet:
      store(kWaiting, kWaitsOnPipe, orders().waiting_set);
      if (protocol().look_again_after_waiting) me_.at = At::LookAgain;
      else found_nothing();
      return true;
    case At::LookAgain:
      look(load(stamp, orders().look_again_stamp));
      if (me_.found == Stamp::Nothing) found_nothing();
      else me_.at = At::WaitingClear;
      return true;
    case At::WaitingClear:
      store(kWaiting, kAwake, orders().waiting_clear);
      if (me_.in_wait) wake_up();
      else me_.at = At::Header;
      return true;
    case At::SpinLook:
      look(load(stamp, orders().look_stamp));
      if (me_.found != Stamp::Nothing) wake_up();
      else me_.at = protocol().futex_word_before_look ? At::DataWakesLoad : At::FutexWaitingSet;
      return true;
    case At::DataWakesLoad:
      me_.data_wakes = load(kDataWakes, orders().data_wakes_load);
      me_.at = protocol().futex_word_before_look ? At::FutexWaitingSet : At::FutexWait;
      return true;
    case At::FutexWaitingSet:
      store(kWaiting, kWaitsOnFutex, orders().waiting_set);
      me_.at = At::FutexLookAgain;
      return true;
    case At::FutexLookAgain:
      look(load(stamp, orders().look_again_stamp));
      if (me_.found != Stamp::Nothing) me_.at = At::WokenLook;
      else me_.at = protocol().futex_word_before_look ? At::FutexWait : At::DataWakesLoad;
      me_.found = Stamp::Nothing;
      return true;
    case At::FutexWait:
      // The kernel compares under its lock; what it reads is no newer than that lock makes it.
      exchange(kFutexLock, 0, Order::AcqRel);
      me_.at = load(kDataWakes, Order::Relaxed) == me_.data_wakes ? At::FutexAsleep : At::WokenLook;
      me_.data_wakes = 0;
      return true;
    case At::FutexAsleep:
      // Who sleeps here has a deadline in truth, after which it finds the broker gone.
      if (!state_.shared.broker_dead) return false;
      me_.at = At::WokenLook;
      note("the deadline");
      return true;
    case At::WokenLook:
      look(load(stamp, orders().look_stamp));
      me_.at = me_.found != Stamp::Nothing ? At::WaitingClear : At::WaitingSet;
      return true;
    default:
      return false;
  }
}

// wait() answers true.
void ReaderStep::wake_up() {
  me_.in_wait = me_.idle = false;
  me_.found = Stamp::Nothing;
  me_.at = At::Decide;
}

// What the consumer does between two calls: look for the next record, release one that it holds, in
// any order, or sleep and wake up.
bool ReaderStep::decide() {
  constexpr int kNext = -1;
  constexpr int kWake = -2;
  constexpr int kWait = -3;
  std::array<int, kHeldMax + 3> options{};
  int count = 0;
  int active = 0;
  for (int at = 0; at < me_.held_count; at++) {
    if (me_.held[at].released) continue;
    active++;
    options[count++] = at;
  }
  const bool readable = state_.shared.data_pipe != 0 && config().sleep == Sleep::OnPipe;
  if (!me_.idle && active < config().hold_max) options[count++] = kNext;
  if (me_.idle && (readable || state_.shared.broker_dead || config().sleep == Sleep::Never)) {
    options[count++] = kWake;
  }
  // A thread that sleeps with records in hand could starve the writer: its own fault.
  if (me_.idle && config().sleep == Sleep::OnFutex && active == 0) options[count++] = kWait;
  if (count == 0) return false;
  const int option = options[choice_.pick(count)];
  if (option >= 0) {
    release(option);
    return true;
  }
  me_.at = option == kWait ? At::SpinLook : At::Look;
  if (option == kNext) note("next()");
  if (option == kWait) note("wait()");
  me_.in_wait = option == kWait;
  if (option != kWake) return true;
  me_.end_of_file = state_.shared.broker_dead && !readable;
  note(me_.end_of_file ? "woken by the end of the file" : "woken, pipe drained");
  if (me_.end_of_file) state_.memory.see_all(thread_);
  state_.shared.data_pipe = 0;
  me_.idle = false;
  return true;
}

void ReaderStep::look(Value seen) {
  me_.found = Stamp::Nothing;
  for (const Stamp stamp : {Stamp::Committed, Stamp::Pad}) {
    if (seen == word(me_.position, stamp)) me_.found = stamp;
  }
  if (me_.found == Stamp::Nothing) return;
  if (state_.ghost.stamp[line_of(me_.position)] != stamp_word(me_.position, me_.found)) {
    fail(Violation::NotSettled);
  }
}

void ReaderStep::found_nothing() {
  note("nothing yet");
  me_.idle = true;
  me_.in_wait = false;
  me_.at = At::Decide;
  if (!me_.end_of_file) return;
  const Value stamp = state_.ghost.stamp[line_of(me_.position)];
  if (stamp == stamp_word(me_.position, Stamp::Committed) ||
      stamp == stamp_word(me_.position, Stamp::Pad)) {
    fail(Violation::Lost);
  }
  me_.at = At::Done;
}

void ReaderStep::copy_header() {
  const Location length = length_at(me_.position);
  read_plain(me_.position, 1);
  if (!state_.memory.up_to_date(thread_, length)) fail(Violation::DataRace);
  const Value lines = state_.memory.newest(length);
  if (lines == 0 || lines != state_.ghost.length[line_of(me_.position)]) {
    return fail(Violation::WrongLength);
  }
  if (me_.held_count == kHeldMax) throw std::length_error("more held records than kHeldMax");
  const bool gap = me_.found == Stamp::Pad;
  me_.held[me_.held_count++] = Held{me_.position, lines, gap, gap};
  me_.position = static_cast<Value>(me_.position + lines);
  me_.found = Stamp::Nothing;
  me_.at = At::Decide;
  if (!gap) return;
  me_.in_next = true;
  publish();
}

// The consumer reads the payload until the moment before it releases.
void ReaderStep::release(int index) {
  Held& held = me_.held[index];
  read_plain(held.position, held.lines);
  for (int at = 0; at < held.lines; at++) {
    if (state_.ghost.owner[line_of(static_cast<Value>(held.position + at))] != held.position) {
      fail(Violation::WrongBytes);
    }
  }
  held.taken = held.released = true;
  publish();
}

// publish_taken() and publish_released(): nothing but this thread touches what they compute from.
void ReaderStep::publish() {
  me_.publish_taken = me_.publish_read = kNone;
  for (int at = 0; at < me_.held_count && me_.held[at].taken; at++) {
    const Value end = static_cast<Value>(me_.held[at].position + me_.held[at].lines);
    if (distance(me_.taken_position, end) > 0) me_.taken_position = me_.publish_taken = end;
  }
  int freed = 0;
  for (; freed < me_.held_count && me_.held[freed].released; freed++) {
    me_.publish_read = static_cast<Value>(me_.held[freed].position + me_.held[freed].lines);
  }
  for (int at = 0; at < kHeldMax; at++) {
    me_.held[at] = at + freed < me_.held_count ? me_.held[at + freed] : Held{};
  }
  me_.held_count = static_cast<std::uint8_t>(me_.held_count - freed);
  // Without a writer that asks, nobody can see the store.
  if (me_.publish_taken != kNone && model_.uses(OpKind::Taken)) me_.at = At::TakenStore;
  else published_taken();
}

void ReaderStep::published_taken() {
  me_.publish_taken = 0;
  if (me_.publish_read != kNone) me_.at = At::ReadPositionStore;
  else go_on();
}

void ReaderStep::published_read() {
  me_.publish_read = 0;
  for (const WriterScript& writer : config().writers) {
    if (writer.when_full != WhenFull::Wait) continue;
    me_.at = At::SpaceWaitingLoad;
    return;
  }
  go_on();
}

void ReaderStep::go_on() {
  me_.wait = me_.publish_taken = me_.publish_read = 0;
  me_.at = me_.in_next ? At::Look : At::Decide;
  me_.in_next = false;
}

bool LiarStep::run() {
  if (state_.shared.lies == config().lies_max) return false;
  state_.shared.lies++;
  const bool about_taken = model_.uses(OpKind::Taken) && choice_.pick(2) == 1;
  // From before the start to past what was claimed, and a value that is no line.
  const int first = config().start - 1;
  const int last = state_.memory.newest(kTail) + config().lines;
  const int pick = choice_.pick(last - first + 2);
  const Value value = pick == 0 ? kUnaligned : static_cast<Value>(first + pick - 1);
  // relaxed: a liar need not publish its reads.
  store(about_taken ? kTakenPosition : kReadPosition, value, Order::Relaxed);
  return true;
}

bool WatchdogStep::run() {
  const Value position = state_.memory.newest(kCommitted);
  const Location stamp = stamp_at(position);
  if (state_.memory.newest(stamp) != word(position, Stamp::Busy)) return false;
  if (!compare_exchange(stamp, word(position, Stamp::Busy), word(position, Stamp::Pad),
                        Order::SeqCst, Order::Relaxed)
           .won) {
    return true;
  }
  // The lines stay open: their owner is alive and may still write.
  set_ghost(position, Stamp::Pad, state_.ghost.length[line_of(position)]);
  return true;
}

}  // namespace fabric::model

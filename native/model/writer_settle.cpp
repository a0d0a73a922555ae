// RingWriter::publish_gap(), begin_record(), settle(), advance_committed(), wake_reader(),
// arm_space() and the addon's wait for space; and the walk through a writer's script.
#include "step.hpp"

namespace fabric::model {

using At = WriterAt;

void WriterStep::start_op() {
  forget_claim();
  me_.full_at = 0;
  if (me_.ending) {
    for (std::uint8_t slot = 0; slot < kSlotsMax; slot++) {
      if (me_.claims[slot].position != kNone) return start_settle(slot, Stamp::Pad);
    }
    return end();
  }
  for (; me_.op < script_.ops.size(); me_.op++) {
    const Op& op = script_.ops[me_.op];
    // A refused claim leaves nothing to settle.
    const bool settles = op.kind == OpKind::Commit || op.kind == OpKind::Abort;
    if (settles && me_.claims[op.slot].position == kNone) continue;
    switch (op.kind) {
      case OpKind::Claim: return start_claim();
      case OpKind::Commit: return start_settle(op.slot, Stamp::Committed);
      case OpKind::Abort: return start_settle(op.slot, Stamp::Pad);
      case OpKind::Taken: me_.at = At::TakenLoad; return;
      case OpKind::Close: me_.at = At::ClosedStore; return;
    }
  }
  end();
}

void WriterStep::next_op() {
  if (!me_.ending) me_.op++;
  start_op();
}

void WriterStep::end() {
  me_ = Writer{};
  state_.memory.end_thread(thread_);
}

void WriterStep::start_settle(std::uint8_t slot, Stamp stamp) {
  me_.slot = slot;
  me_.settle_to = stamp;
  me_.at = At::Settle;
}

bool WriterStep::run_publish() {
  switch (me_.at) {
    case At::GapLength:
      write_plain(me_.tail, 1);
      store(length_at(me_.tail), me_.pad, Order::Relaxed);
      me_.at = At::GapStamp;
      return true;
    case At::GapStamp:
      store(stamp_at(me_.tail), word(me_.tail, Stamp::Pad), orders().gap_stamp);
      set_ghost(me_.tail, Stamp::Pad, me_.pad);
      state_.ghost.open &= static_cast<std::uint8_t>(~mask_of(me_.tail, me_.pad));
      advance(me_.after_advance);
      return true;
    case At::RecordLength: {
      const Claimed& claim = me_.claims[script_.ops[me_.op].slot];
      write_plain(claim.position, 1);
      store(length_at(claim.position), claim.lines, Order::Relaxed);
      me_.at = At::BusyStamp;
      return true;
    }
    case At::BusyStamp: {
      const Value position = me_.claims[script_.ops[me_.op].slot].position;
      store(stamp_at(position), word(position, Stamp::Busy), orders().busy_stamp);
      next_op();
      return true;
    }
    case At::Settle:
      settle();
      return true;
    case At::ClosedStore:
      store(kClosed, 1, orders().closed_store);
      next_op();
      return true;
    default:
      return false;
  }
}

void WriterStep::settle() {
  const Claimed claim = me_.claims[me_.slot];
  const Location stamp = stamp_at(claim.position);
  const Value settled = word(claim.position, me_.settle_to);
  // Plain writes until the last moment. In one step with the exchange: another thread that looks at
  // these lines in between is a data race whenever it comes.
  if (me_.settle_to == Stamp::Committed) {
    write_plain(claim.position, claim.lines);
    for (int at = 0; at < claim.lines; at++) {
      state_.ghost.owner[line_of(static_cast<Value>(claim.position + at))] = claim.position;
    }
  }
  bool won = true;
  if (protocol().settle_by_exchange) {
    won = compare_exchange(stamp, word(claim.position, Stamp::Busy), settled, orders().settle,
                           orders().settle_lost)
              .won;
  } else {
    won = state_.ghost.stamp[line_of(claim.position)] == stamp_word(claim.position, Stamp::Busy);
    store(stamp, settled, orders().settle);
  }
  if (!won) fail(Violation::SettledTwice);
  set_ghost(claim.position, me_.settle_to, claim.lines);
  state_.ghost.open &= static_cast<std::uint8_t>(~mask_of(claim.position, claim.lines));
  me_.claims[me_.slot] = Claimed{};
  me_.slot = 0;
  me_.settle_to = Stamp::Nothing;
  advance(After::Settled);
}

void WriterStep::advance(After after) {
  me_.after_advance = after;
  me_.at = At::AdvanceCommitted;
}

bool WriterStep::run_advance() {
  switch (me_.at) {
    case At::AdvanceCommitted:
      me_.committed = load(kCommitted, orders().committed_load);
      me_.at = At::AdvanceTail;
      return true;
    case At::AdvanceTail:
      if (load(kTail, orders().tail_load) == me_.committed) return_from_advance();
      else me_.at = At::AdvanceStamp;
      return true;
    case At::AdvanceStamp: {
      const Value seen = load(stamp_at(me_.committed), orders().look_at_stamp);
      const bool settled = seen == word(me_.committed, Stamp::Committed) ||
                           seen == word(me_.committed, Stamp::Pad);
      me_.at = settled ? At::AdvanceLength : At::AdvanceRecheck;
      return true;
    }
    case At::AdvanceLength:
      me_.length = load(length_at(me_.committed), orders().look_at_length);
      me_.at = At::AdvanceExchange;
      return true;
    case At::AdvanceRecheck:
      if (load(kCommitted, orders().committed_load) == me_.committed) return_from_advance();
      else me_.at = At::AdvanceCommitted;
      return true;
    case At::AdvanceExchange: {
      const int line = line_of(me_.committed);
      const Value next = static_cast<Value>(me_.committed + me_.length);
      bool won = true;
      if (protocol().committed_by_exchange) {
        won = compare_exchange(kCommitted, me_.committed, next, orders().committed_exchange,
                               orders().committed_exchange_lost)
                  .won;
      } else {
        if (state_.memory.newest(kCommitted) != me_.committed) fail(Violation::CommittedWrong);
        store(kCommitted, next, Order::Release);
      }
      const Value stamp = state_.ghost.stamp[line];
      const bool settled = stamp == stamp_word(me_.committed, Stamp::Committed) ||
                           stamp == stamp_word(me_.committed, Stamp::Pad);
      if (won && !(settled && state_.ghost.length[line] == me_.length)) {
        fail(Violation::CommittedWrong);
      }
      me_.length = 0;
      me_.at = At::AdvanceCommitted;
      return true;
    }
    default:
      return false;
  }
}

void WriterStep::return_from_advance() {
  const After after = me_.after_advance;
  me_.committed = me_.length = 0;
  me_.after_advance = After::Nothing;
  switch (after) {
    case After::GapBeforeRecord: me_.at = At::RecordLength; return;
    case After::Check: me_.at = At::CommittedRecheck; return;
    case After::GapOnly: return wake(After::Full);
    default: return wake(After::NextOp);
  }
}

void WriterStep::wake(After after) {
  me_.after_wake = after;
  // A liar's flag costs signals and decides nothing.
  if (config().reader == ReaderKind::Honest && config().sleep != Sleep::Never) me_.at = At::WaitingLoad;
  else return_from_wake();
}

bool WriterStep::run_wake() {
  switch (me_.at) {
    case At::WaitingLoad:
      if (load(kWaiting, orders().waiting_load) == kAwake) return_from_wake();
      else me_.at = At::WaitingExchange;
      return true;
    case At::WaitingExchange: {
      const Value sleeps = exchange(kWaiting, kAwake, orders().waiting_exchange);
      if (sleeps == kAwake) return_from_wake();
      else if (sleeps == kWaitsOnPipe) me_.at = At::DataSignal;
      else me_.at = protocol().futex_word_changes ? At::DataWakesAdd : At::FutexWake;
      return true;
    }
    case At::DataWakesAdd:
      exchange(kDataWakes, static_cast<Value>(state_.memory.newest(kDataWakes) + 1),
               orders().data_wakes_add);
      me_.at = At::FutexWake;
      return true;
    case At::FutexWake:
      exchange(kFutexLock, 0, Order::AcqRel);
      note("wake who sleeps");
      if (state_.reader.at == ReaderAt::FutexAsleep) state_.reader.at = ReaderAt::WokenLook;
      return_from_wake();
      return true;
    case At::DataSignal:
      note("signal data");
      state_.shared.data_pipe = 1;
      return_from_wake();
      return true;
    default:
      return false;
  }
}

void WriterStep::return_from_wake() {
  if (me_.after_wake == After::Full) answer_full();
  else next_op();
}

bool WriterStep::run_wait() {
  switch (me_.at) {
    case At::SpaceNumber:
      me_.number = static_cast<Value>(state_.memory.newest(kSpaceWaits) + 1);
      exchange(kSpaceWaits, me_.number, orders().space_waits_add);
      me_.at = At::SpaceWaitingStore;
      return true;
    case At::SpaceWaitingStore:
      store(kSpaceWaiting, me_.number, orders().space_waiting_store);
      me_.number = 0;
      me_.at = At::SpaceRecheck;
      return true;
    case At::SpaceRecheck:
      me_.at = load(kReadPosition, orders().space_recheck) == me_.full_at ? At::Asleep : At::Disarm;
      return true;
    case At::Disarm:
      store(kSpaceWaiting, 0, orders().disarm_store);
      me_.full_at = 0;
      start_claim();
      return true;
    case At::Asleep:
      if (state_.shared.reader_dead) {
        note("the reader is dead");
        me_.ending = true;
        start_op();
        return true;
      }
      if (state_.shared.space_pipe == 0) return false;
      note("woken, pipe drained");
      state_.shared.space_pipe = 0;
      me_.at = At::SpaceMoved;
      return true;
    case At::SpaceMoved:
      if (load(kReadPosition, orders().space_moved_load) != me_.full_at) me_.at = At::Disarm;
      else me_.at = protocol().rearm_after_idle_wakeup ? At::SpaceNumber : At::Asleep;
      return true;
    default:
      return false;
  }
}

}  // namespace fabric::model

// RingWriter::claim(), look(), try_claim(), claim_gap_only(), refresh_head(), taken_position() and
// within_committed().
#include "step.hpp"

namespace fabric::model {

using At = WriterAt;

bool WriterStep::run() {
  return me_.at != At::Done &&
         (run_claim() || run_check() || run_publish() || run_advance() || run_wake() || run_wait());
}

void WriterStep::start_claim() {
  me_.at = model_.uses(OpKind::Close)                ? At::ClosedLoad
           : config().reader == ReaderKind::Liar     ? At::PoisonedLoad
           : protocol().head_before_tail             ? At::HeadLoad
                                                     : At::TailLoad;
}

// A value that is not needed any more would make equal futures look different.
void WriterStep::forget_claim() {
  me_.head = me_.tail = me_.pad = me_.accepted = me_.read = me_.committed = me_.length = 0;
  me_.raising = me_.number = 0;
  me_.after_advance = me_.after_wake = After::Nothing;
}

bool WriterStep::run_claim() {
  const Value need = me_.op < script_.ops.size() ? script_.ops[me_.op].lines : 0;
  switch (me_.at) {
    case At::ClosedLoad:
      if (load(kClosed, orders().closed_load)) next_op();
      else me_.at = config().reader == ReaderKind::Liar ? At::PoisonedLoad : At::HeadLoad;
      return true;
    case At::PoisonedLoad:
      if (load(kPoisoned, orders().poisoned_load)) next_op();
      else me_.at = At::HeadLoad;
      return true;
    case At::HeadLoad:
      me_.head = load(kHead, orders().head_load);
      if (protocol().head_before_tail) me_.at = At::TailLoad;
      else after_look();
      return true;
    case At::TailLoad:
      me_.tail = load(kTail, orders().tail_load);
      if (protocol().head_before_tail) after_look();
      else me_.at = At::HeadLoad;
      return true;
    case At::HeadReload:
      me_.head = load(kHead, orders().head_load);
      if (fits((protocol().pad_in_sum ? me_.pad : 0) + need)) me_.at = At::TailExchange;
      else if (me_.pad > 0 && fits(me_.pad) && protocol().pad_only_claim) me_.at = At::GapExchange;
      else me_.at = At::FullRecheck;
      return true;
    case At::FullRecheck:
      if (load(kTail, orders().tail_load) == me_.tail) answer_full();
      else lost_tail();
      return true;
    case At::TailExchange: {
      const Value total = static_cast<Value>(me_.pad + need);
      if (!compare_exchange(kTail, me_.tail, static_cast<Value>(me_.tail + total),
                            orders().tail_exchange, orders().tail_exchange_lost)
               .won) {
        lost_tail();
        return true;
      }
      won_tail(total);
      const Value position = static_cast<Value>(me_.tail + me_.pad);
      me_.claims[script_.ops[me_.op].slot] = {position, need};
      set_ghost(position, Stamp::Busy, need);
      me_.after_advance = After::GapBeforeRecord;
      me_.at = me_.pad > 0 ? At::GapLength : At::RecordLength;
      return true;
    }
    case At::GapExchange:
      if (!compare_exchange(kTail, me_.tail, static_cast<Value>(me_.tail + me_.pad),
                            orders().tail_exchange, orders().tail_exchange_lost)
               .won) {
        lost_tail();
        return true;
      }
      won_tail(me_.pad);
      me_.after_advance = After::GapOnly;
      me_.at = At::GapLength;
      return true;
    default:
      return false;
  }
}

void WriterStep::after_look() {
  const Value need = script_.ops[me_.op].lines;
  const Value to_end = static_cast<Value>(config().lines - line_of(me_.tail));
  me_.pad = need > to_end ? to_end : 0;
  me_.at = fits((protocol().pad_in_sum ? me_.pad : 0) + need) ? At::TailExchange : At::AcceptedLoad;
}

bool WriterStep::fits(int lines) const {
  const int room = config().lines - protocol().guard_lines;
  if (protocol().signed_difference) {
    return distance(me_.head, static_cast<Value>(me_.tail + lines)) <= room;
  }
  return static_cast<Value>(room + me_.head - me_.tail) >= lines;
}

void WriterStep::won_tail(Value lines) {
  const Value end = static_cast<Value>(me_.tail + lines);
  const std::uint8_t mask = mask_of(me_.tail, lines);
  if (state_.ghost.open & mask) fail(Violation::Overlap);
  state_.ghost.open |= mask;
  if (config().reader != ReaderKind::Honest) return;
  const int used = distance(state_.ghost.released, end);
  if (used > config().lines) fail(Violation::Overlap);
  else if (used > config().lines - protocol().guard_lines) fail(Violation::GuardBroken);
}

void WriterStep::lost_tail() {
  forget_claim();
  start_claim();
}

void WriterStep::answer_full() {
  // Its own copy of a read position that it had accepted already.
  if (config().reader == ReaderKind::Honest && distance(me_.head, me_.read) > 0) {
    fail(Violation::FalseFull);
  }
  const Value head = me_.head;
  forget_claim();
  note("FULL");
  if (state_.shared.reader_dead) {
    me_.ending = true;
    start_op();
  } else if (script_.when_full == WhenFull::GiveUp) {
    next_op();
  } else if (script_.when_full == WhenFull::Wait) {
    me_.full_at = head;
    me_.at = At::SpaceNumber;
  } else {
    start_claim();
  }
}

bool WriterStep::run_check() {
  const Location bound = protocol().position_checked_against_committed ? kCommitted : kTail;
  switch (me_.at) {
    case At::AcceptedLoad:
      me_.accepted = load(kHead, orders().head_load);
      me_.raising = kHead;
      me_.at = At::ReadPositionLoad;
      return true;
    case At::ReadPositionLoad:
      me_.read = load(kReadPosition, orders().read_position_load);
      me_.at = me_.read == kUnaligned ? At::PoisonedStore : At::CommittedCheck;
      return true;
    case At::TakenLoad:
      me_.accepted = load(kTaken, orders().head_load);
      me_.raising = kTaken;
      me_.at = config().reader == ReaderKind::Liar ? At::TakenPoisonedLoad : At::TakenPositionLoad;
      return true;
    case At::TakenPoisonedLoad:
      if (load(kPoisoned, orders().poisoned_load)) next_op();
      else me_.at = At::TakenPositionLoad;
      return true;
    case At::TakenPositionLoad:
      me_.read = load(kTakenPosition, orders().taken_position_load);
      me_.at = me_.read == kUnaligned ? At::PoisonedStore : At::CommittedCheck;
      return true;
    case At::CommittedCheck:
      if (within_committed(load(bound, orders().committed_load))) accept_checked();
      else if (protocol().advance_before_poison) advance(After::Check);
      else me_.at = At::PoisonedStore;
      return true;
    case At::CommittedRecheck:
      if (within_committed(load(bound, orders().committed_load))) accept_checked();
      else me_.at = At::PoisonedStore;
      return true;
    case At::RaiseLoad:
      me_.accepted = load(static_cast<Location>(me_.raising), orders().head_load);
      if (distance(me_.accepted, me_.read) > 0) me_.at = At::RaiseExchange;
      else raised();
      return true;
    case At::RaiseExchange: {
      if (!protocol().head_only_grows) {
        store(static_cast<Location>(me_.raising), me_.read, Order::Release);
        raised();
        return true;
      }
      const Exchanged result =
          compare_exchange(static_cast<Location>(me_.raising), me_.accepted, me_.read,
                           orders().head_raise, orders().head_raise_lost);
      me_.accepted = result.seen;
      if (result.won || distance(result.seen, me_.read) <= 0) raised();
      return true;
    }
    case At::PoisonedStore:
      if (config().reader == ReaderKind::Honest) fail(Violation::FalsePoison);
      store(kPoisoned, 1, orders().poisoned_store);
      next_op();
      return true;
    default:
      return false;
  }
}

// One comparison covers both bounds: a position before the accepted one becomes a huge difference.
bool WriterStep::within_committed(Value committed) const {
  return static_cast<Value>(me_.read - me_.accepted) <=
         static_cast<Value>(committed - me_.accepted);
}

void WriterStep::accept_checked() {
  me_.accepted = 0;
  me_.at = protocol().head_only_grows ? At::RaiseLoad : At::RaiseExchange;
}

void WriterStep::raised() {
  me_.accepted = 0;
  if (me_.raising == kTaken) next_op();
  else me_.at = At::HeadReload;
}

}  // namespace fabric::model

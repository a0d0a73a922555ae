// What one run of the model checks: the ring's size, who does what, and how the protocol is changed.
// The defaults of Protocol are the code in native/src; orders_test.cpp compares the two.
#pragma once

#include <string>
#include <vector>

#include "memory.hpp"

namespace fabric::model {

// The memory order of each access, named by the word and the function that accesses it.
struct Orders {
  Order tail_load = Order::Acquire;
  Order tail_exchange = Order::AcqRel;
  Order tail_exchange_lost = Order::Acquire;
  Order head_load = Order::Acquire;
  Order head_raise = Order::AcqRel;
  Order head_raise_lost = Order::Acquire;
  Order committed_load = Order::Acquire;
  Order committed_exchange = Order::AcqRel;
  Order committed_exchange_lost = Order::Acquire;
  Order read_position_load = Order::Acquire;
  Order taken_position_load = Order::Acquire;
  Order gap_stamp = Order::SeqCst;
  Order busy_stamp = Order::Release;
  Order settle = Order::SeqCst;
  Order settle_lost = Order::Relaxed;
  Order look_at_stamp = Order::Acquire;
  Order look_at_length = Order::Relaxed;
  Order waiting_load = Order::SeqCst;
  Order waiting_exchange = Order::SeqCst;
  Order data_wakes_add = Order::Release;
  Order space_waits_add = Order::Relaxed;
  Order space_waiting_store = Order::SeqCst;
  Order space_recheck = Order::SeqCst;
  Order disarm_store = Order::Relaxed;
  Order space_moved_load = Order::Acquire;
  Order poisoned_store = Order::Release;
  Order poisoned_load = Order::Acquire;
  Order closed_store = Order::Release;
  Order closed_load = Order::Acquire;

  Order look_stamp = Order::Acquire;
  Order look_again_stamp = Order::SeqCst;
  Order waiting_set = Order::SeqCst;
  Order waiting_clear = Order::Relaxed;
  Order data_wakes_load = Order::Relaxed;
  Order taken_position_store = Order::Release;
  Order read_position_store = Order::SeqCst;
  Order space_waiting_load = Order::SeqCst;
};

// The protocol as the code has it, and the ways in which a mutant departs from it.
struct Protocol {
  Orders orders;
  int guard_lines = 1;
  bool pad_in_sum = true;
  bool pad_only_claim = true;
  bool stamp_has_position = true;
  bool head_only_grows = true;
  bool position_checked_against_committed = true;  // false: against the claimed tail
  bool advance_before_poison = true;               // false: trusts `committed` as it stands
  bool committed_by_exchange = true;               // false: by a plain store
  bool settle_by_exchange = true;                  // false: by a store
  bool head_before_tail = true;
  bool signed_difference = true;
  bool look_again_after_waiting = true;
  bool futex_word_before_look = true;  // false: loaded just before the sleep
  bool futex_word_changes = true;
  // After a wake-up without progress a waiting writer arms again, with a new number.
  bool rearm_after_idle_wakeup = true;
};

enum class OpKind : std::uint8_t { Claim, Commit, Abort, Taken, Close };

struct Op {
  OpKind kind;
  std::uint8_t slot = 0;  // which of its open claims
  std::uint8_t lines = 0;
  bool operator==(const Op&) const = default;
};

// Claim, write the payload, commit.
std::vector<Op> put(std::uint8_t lines);
std::vector<Op> operator+(std::vector<Op> first, const std::vector<Op>& second);
std::vector<Op> take_back(std::uint8_t lines);  // claim, abort

enum class WhenFull : std::uint8_t {
  Retry,   // claim again at once
  Wait,    // arm_space() and sleep on the pipe
  GiveUp,  // leave this record out
};

struct WriterScript {
  std::vector<Op> ops;
  WhenFull when_full = WhenFull::Retry;
  bool operator==(const WriterScript&) const = default;
};

// How the reader waits. When it polls nobody signals, which leaves room for a bigger ring.
enum class Sleep { OnPipe, OnFutex, Never };

enum class ReaderKind { Honest, Liar, None };

struct Config {
  Mode mode = Mode::SequentiallyConsistent;
  int lines = 4;  // of the ring, a power of two
  int start = 4;  // the first position, in lines; the lap before it left committed records behind
  std::vector<WriterScript> writers;
  ReaderKind reader = ReaderKind::Honest;
  int hold_max = 1;  // records that the reader holds at once and releases in any order
  Sleep sleep = Sleep::OnPipe;
  int lies_max = 2;
  bool reader_may_die = false;
  bool broker_may_die = false;
  bool watchdog = false;  // pads over the oldest unsettled record, whoever owns it
  Protocol protocol;
};

}  // namespace fabric::model

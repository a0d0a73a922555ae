// One step of one thread: the modelled accesses, each with a line in the trace, and the checks
// that compare what a thread believes with the ghost.
#pragma once

#include <string>

#include "ring_model.hpp"

namespace fabric::model {

// A stamp's word: the position with the state in its low bits, as in layout.hpp. Initial words
// belong to the lap before.
constexpr Value stamp_word(Value position, Stamp stamp) {
  return static_cast<Value>(position << 2 | static_cast<Value>(stamp));
}

class Step {
 public:
  Step(const RingModel& model, RingState& state, int thread, Choice& choice, std::string* log)
      : model_(model), state_(state), thread_(thread), choice_(choice), log_(log) {}

 protected:
  Value load(Location location, Order order);
  void store(Location location, Value value, Order order);
  Exchanged compare_exchange(Location location, Value expected, Value desired, Order won,
                             Order lost);
  Value exchange(Location location, Value value, Order order);
  void write_plain(Value position, Value lines);
  void read_plain(Value position, Value lines);
  void fail(Violation violation);
  void note(const std::string& text);

  int line_of(Value position) const { return position & (model_.config().lines - 1); }
  Location stamp_at(Value position) const {
    return static_cast<Location>(kStamp + line_of(position));
  }
  Location length_at(Value position) const {
    return static_cast<Location>(kLength + line_of(position));
  }
  std::uint8_t mask_of(Value position, Value lines) const;
  // As the code compares: with the position, or, in a mutant, without.
  Value word(Value position, Stamp stamp) const;
  void set_ghost(Value position, Stamp stamp, Value lines);

  const Config& config() const { return model_.config(); }
  const Protocol& protocol() const { return model_.config().protocol; }
  const Orders& orders() const { return model_.config().protocol.orders; }

  const RingModel& model_;
  RingState& state_;
  const int thread_;
  Choice& choice_;
  std::string* log_;

 private:
  void line(const std::string& text);
};

// Positions are compared by their difference and may wrap, as in the code; here they have 8 bits.
constexpr int distance(Value from, Value to) {
  return static_cast<std::int8_t>(static_cast<Value>(to - from));
}

class WriterStep : public Step {
 public:
  WriterStep(const RingModel& model, RingState& state, int writer, Choice& choice,
             std::string* log)
      : Step(model, state, writer, choice, log),
        me_(state.writers[writer]),
        script_(model.config().writers[writer]) {}

  bool run();
  void start_op();
  void end();

 private:
  bool run_claim();
  bool run_check();
  bool run_publish();
  bool run_advance();
  bool run_wake();
  bool run_wait();

  void start_claim();
  void start_settle(std::uint8_t slot, Stamp stamp);
  void next_op();
  void compute_gap();
  bool fits(int lines) const;
  void after_look();
  void won_tail(Value lines);
  void lost_tail();
  void answer_full();
  void refuse_for_ever();
  void accept_checked();
  bool within_committed(Value committed) const;
  void raised();
  void advance(After after);
  void return_from_advance();
  void wake(After after);
  void return_from_wake();
  void settle();
  void forget_claim();

  Writer& me_;
  const WriterScript& script_;
};

class ReaderStep : public Step {
 public:
  ReaderStep(const RingModel& model, RingState& state, Choice& choice, std::string* log)
      : Step(model, state, model.reader_thread(), choice, log), me_(state.reader) {}

  bool run();

 private:
  bool run_sleep();
  bool decide();
  void wake_up();
  void look(Value word);
  void found_nothing();
  void copy_header();
  void release(int index);
  void publish();
  void published_taken();
  void published_read();
  void go_on();

  Reader& me_;
};

// A consumer that publishes whatever it likes.
class LiarStep : public Step {
 public:
  LiarStep(const RingModel& model, RingState& state, Choice& choice, std::string* log)
      : Step(model, state, model.reader_thread(), choice, log) {}

  bool run();
};

class WatchdogStep : public Step {
 public:
  WatchdogStep(const RingModel& model, RingState& state, Choice& choice, std::string* log)
      : Step(model, state, model.reader_thread() + 1, choice, log) {}

  bool run();
};

}  // namespace fabric::model

#include "step.hpp"

#include "names.hpp"

namespace fabric::model {

void Step::line(const std::string& text) {
  if (!log_) return;
  if (!log_->empty()) *log_ += "; ";
  else *log_ = name_of_thread(model_, thread_) + ": ";
  *log_ += text;
}

void Step::note(const std::string& text) { line(text); }

void Step::fail(Violation violation) {
  if (state_.shared.violation == Violation::None) state_.shared.violation = violation;
  if (log_) line(std::string("=> ") + name_of(violation));
}

Value Step::load(Location location, Order order) {
  const Value value = state_.memory.load(thread_, location, order, choice_);
  if (log_) {
    std::string text = "load " + name_of_location(location) + " (" + name_of(order) + ") = " +
                       text_of(location, value);
    const Value newest = state_.memory.newest(location);
    if (newest != value) text += " [stale, newest is " + text_of(location, newest) + "]";
    line(text);
  }
  return value;
}

void Step::store(Location location, Value value, Order order) {
  if (log_) {
    line("store " + name_of_location(location) + " (" + name_of(order) + ") := " +
         text_of(location, value));
  }
  state_.memory.store(thread_, location, value, order, choice_);
}

Exchanged Step::compare_exchange(Location location, Value expected, Value desired, Order won,
                                 Order lost) {
  const Exchanged result = state_.memory.compare_exchange(thread_, location, expected, desired,
                                                          won, lost, choice_);
  if (log_) {
    line("exchange " + name_of_location(location) + " (" + name_of(won) + ") " +
         text_of(location, expected) + " -> " + text_of(location, desired) +
         (result.won ? " won" : " lost, saw " + text_of(location, result.seen)));
  }
  return result;
}

Value Step::exchange(Location location, Value value, Order order) {
  const Value seen = state_.memory.exchange(thread_, location, value, order, choice_);
  if (log_) {
    line("exchange " + name_of_location(location) + " (" + name_of(order) + ") := " +
         text_of(location, value) + ", was " + text_of(location, seen));
  }
  return seen;
}

std::uint8_t Step::mask_of(Value position, Value lines) const {
  std::uint8_t mask = 0;
  for (Value at = 0; at < lines; at++) {
    mask |= static_cast<std::uint8_t>(1u << line_of(static_cast<Value>(position + at)));
  }
  return mask;
}

void Step::write_plain(Value position, Value lines) {
  if (log_) line("write " + std::to_string(lines) + " line(s) at " + std::to_string(position));
  if (!state_.memory.write_plain(thread_, mask_of(position, lines))) fail(Violation::DataRace);
}

void Step::read_plain(Value position, Value lines) {
  if (log_) line("read " + std::to_string(lines) + " line(s) at " + std::to_string(position));
  if (!state_.memory.read_plain(thread_, mask_of(position, lines))) fail(Violation::DataRace);
}

Value Step::word(Value position, Stamp stamp) const {
  return protocol().stamp_has_position ? stamp_word(position, stamp) : stamp_word(0, stamp);
}

void Step::set_ghost(Value position, Stamp stamp, Value lines) {
  state_.ghost.stamp[line_of(position)] = stamp_word(position, stamp);
  state_.ghost.length[line_of(position)] = lines;
}

}  // namespace fabric::model

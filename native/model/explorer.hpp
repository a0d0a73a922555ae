// Visits every state that a model can reach, breadth first, so that a counterexample is a shortest
// one. Knows nothing of rings: it needs a type with
//   State, agents(), initial(), pack(State) -> bytes, unpack(bytes) -> State,
//   step(State&, agent, Choice&, std::string* log) -> bool (false: the agent has no step here),
//   violation(State) -> const char* or null, finished(State) -> bool.
// A state is remembered by 128 bits of hash: with 10^7 states, two meet with odds below 10^-24.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

namespace fabric::model {

// The outcomes of one step. A step calls pick(n) wherever more than one thing may happen; the
// explorer runs the step again until each outcome was seen.
class Choice {
 public:
  int pick(int outcomes) {
    if (outcomes <= 1) return 0;
    if (at_ == picks_.size()) picks_.push_back({0, outcomes});
    return picks_[at_++].value;
  }
  void rewind() { at_ = 0; }
  bool advance() {
    while (!picks_.empty() && picks_.back().value + 1 == picks_.back().outcomes) picks_.pop_back();
    if (picks_.empty()) return false;
    picks_.back().value++;
    return true;
  }

 private:
  struct Pick {
    int value;
    int outcomes;
  };
  std::vector<Pick> picks_;
  std::size_t at_ = 0;
};

struct Fingerprint {
  std::uint64_t low;
  std::uint64_t high;
  bool operator==(const Fingerprint&) const = default;
};

Fingerprint fingerprint_of(const std::string& bytes);

// Each state once, numbered in the order of its discovery.
class StateSet {
 public:
  StateSet() : slots_(1024, 0) {}
  // The number of the state, and whether it is new.
  std::pair<std::uint32_t, bool> insert(Fingerprint print);
  std::uint32_t size() const { return static_cast<std::uint32_t>(prints_.size()); }
  const Fingerprint& print(std::uint32_t number) const { return prints_[number]; }

 private:
  void grow();
  std::vector<Fingerprint> prints_;
  std::vector<std::uint32_t> slots_;  // number + 1, 0 = empty
};

struct Edge {
  std::uint32_t from;
  std::uint32_t to;
};

// For each state: can it reach one of `finished`?
std::vector<bool> can_reach(std::uint32_t states, const std::vector<Edge>& edges,
                            const std::vector<std::uint32_t>& finished);

struct Report {
  std::uint32_t states = 0;
  std::size_t steps = 0;
  std::uint32_t finished = 0;
  std::uint32_t stuck = 0;  // states from which no end can be reached
  double cpu_seconds = 0;
  bool complete = true;   // false: stopped at the limit, nothing is proved
  std::string violation;  // empty: none
  std::string trace;      // one line for each step, to the violation or the first stuck state

  bool passed() const { return violation.empty() && complete; }
};

template <typename Model>
class Explorer {
 public:
  explicit Explorer(const Model& model, std::uint32_t states_max = 20'000'000)
      : model_(model), states_max_(states_max) {}

  Report run() {
    const std::clock_t begin = std::clock();
    const std::string first = model_.pack(model_.initial());
    visited_.insert(fingerprint_of(first));
    parents_.push_back(0);
    level_.push_back({0, first});
    while (!level_.empty() && report_.violation.empty() && report_.complete) expand_level();
    report_.states = visited_.size();
    report_.finished = static_cast<std::uint32_t>(finished_.size());
    report_.steps = edges_.size();
    if (report_.passed()) find_stuck();
    report_.cpu_seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    return report_;
  }

 private:
  struct Open {
    std::uint32_t number;
    std::string bytes;
  };

  void expand_level() {
    std::vector<Open> next;
    for (const Open& open : level_) {
      const auto state = model_.unpack(open.bytes);
      if (model_.finished(state)) finished_.push_back(open.number);
      for (int agent = 0; agent < model_.agents(); agent++) {
        if (!expand(state, open.number, agent, next)) return;
      }
    }
    level_ = std::move(next);
  }

  bool expand(const typename Model::State& state, std::uint32_t from, int agent,
              std::vector<Open>& next) {
    Choice choice;
    do {
      choice.rewind();
      typename Model::State after = state;
      if (!model_.step(after, agent, choice, nullptr)) return true;
      std::string bytes = model_.pack(after);
      const auto [number, fresh] = visited_.insert(fingerprint_of(bytes));
      edges_.push_back({from, number});
      if (!fresh) continue;
      parents_.push_back(from);
      if (const char* violation = model_.violation(after)) {
        report_.violation = violation;
        report_.trace = trace_to(number);
        return false;
      }
      if (visited_.size() >= states_max_) report_.complete = false;
      next.push_back({number, std::move(bytes)});
    } while (choice.advance());
    return report_.complete;
  }

  // Also finds a lost wake-up: a sleeper with nobody left to wake it has no step at all.
  void find_stuck() {
    const std::vector<bool> ends = can_reach(visited_.size(), edges_, finished_);
    for (std::uint32_t number = visited_.size(); number-- > 0;) {
      if (ends[number]) continue;
      report_.stuck++;
      report_.violation = "cannot finish";
      first_stuck_ = number;
    }
    if (report_.stuck > 0) report_.trace = trace_to(first_stuck_);
  }

  // Steps are not stored: the way to a state is walked again, choosing at each state the step that
  // leads to the next one on the way.
  std::string trace_to(std::uint32_t number) const {
    std::vector<std::uint32_t> way;
    for (; number != 0; number = parents_[number]) way.push_back(number);
    auto state = model_.initial();
    std::string text;
    while (!way.empty()) {
      text += take_step(state, visited_.print(way.back()));
      way.pop_back();
    }
    return text.empty() ? "in the initial state already\n" : text;
  }

  std::string take_step(typename Model::State& state, const Fingerprint& wanted) const {
    for (int agent = 0; agent < model_.agents(); agent++) {
      Choice choice;
      do {
        choice.rewind();
        auto after = state;
        std::string log;
        if (!model_.step(after, agent, choice, &log)) break;
        if (fingerprint_of(model_.pack(after)) != wanted) continue;
        // Not unpacked from its bytes, which may have put equal agents in another order.
        state = after;
        return log + "\n";
      } while (choice.advance());
    }
    return "(no such step)\n";
  }

  const Model& model_;
  const std::uint32_t states_max_;
  Report report_;
  StateSet visited_;
  std::vector<std::uint32_t> parents_;
  std::vector<Edge> edges_;
  std::vector<std::uint32_t> finished_;
  std::vector<Open> level_;
  std::uint32_t first_stuck_ = 0;
};

}  // namespace fabric::model

// Litmus tests: the view machine allows what C++20 allows, and nothing that it forbids. Without them
// a model that passes could be a memory that is too strong.
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "memory.hpp"

using namespace fabric::model;

namespace {

// Any two locations will do.
constexpr Location kX = kTail;
constexpr Location kY = kHead;

enum class Act { Load, Store, Add, WriteData, ReadData };

struct Instruction {
  Act act;
  Location location = kX;
  Order order = Order::Relaxed;
  Value value = 0;
};

using Program = std::vector<std::vector<Instruction>>;
using Outcome = std::vector<int>;  // what the loads returned, thread after thread; -1 = data race

struct LitmusState {
  Memory memory;
  std::vector<std::size_t> at;
  std::vector<std::vector<int>> loaded;
};

void explore(const Program& program, const LitmusState& state, std::set<Outcome>& outcomes);

void run_one(const Program& program, LitmusState state, int thread, Choice& choice,
             std::set<Outcome>& outcomes) {
  const Instruction& now = program[thread][state.at[thread]++];
  bool race = false;
  switch (now.act) {
    case Act::Load:
      state.loaded[thread].push_back(state.memory.load(thread, now.location, now.order, choice));
      break;
    case Act::Store:
      state.memory.store(thread, now.location, now.value, now.order, choice);
      break;
    case Act::Add: {
      const Value seen = state.memory.newest(now.location);
      state.loaded[thread].push_back(
          state.memory.exchange(thread, now.location, static_cast<Value>(seen + 1), now.order,
                                choice));
      break;
    }
    case Act::WriteData:
      race = !state.memory.write_plain(thread, 1);
      break;
    case Act::ReadData:
      race = !state.memory.read_plain(thread, 1);
      break;
  }
  state.memory.trim();
  if (race) outcomes.insert({-1});
  else explore(program, state, outcomes);
}

void explore(const Program& program, const LitmusState& state, std::set<Outcome>& outcomes) {
  bool ended = true;
  for (int thread = 0; thread < static_cast<int>(program.size()); thread++) {
    if (state.at[thread] == program[thread].size()) continue;
    ended = false;
    Choice choice;
    do {
      choice.rewind();
      run_one(program, state, thread, choice, outcomes);
    } while (choice.advance());
  }
  if (!ended) return;
  Outcome outcome;
  for (const auto& loaded : state.loaded) outcome.insert(outcome.end(), loaded.begin(), loaded.end());
  outcomes.insert(outcome);
}

std::set<Outcome> outcomes_of(const Program& program) {
  const int threads = static_cast<int>(program.size());
  LitmusState state{Memory(Mode::Views, threads), std::vector<std::size_t>(program.size(), 0),
                    std::vector<std::vector<int>>(program.size())};
  std::set<Outcome> outcomes;
  explore(program, state, outcomes);
  return outcomes;
}

Instruction load(Location location, Order order) { return {Act::Load, location, order}; }
Instruction store(Location location, Order order, Value value = 1) {
  return {Act::Store, location, order, value};
}
Instruction add(Location location, Order order) { return {Act::Add, location, order}; }

constexpr auto relaxed = Order::Relaxed;
constexpr auto acquire = Order::Acquire;
constexpr auto release = Order::Release;
constexpr auto acq_rel = Order::AcqRel;
constexpr auto seq_cst = Order::SeqCst;

TEST(ModelMemory, AMessageIsPassedByReleaseAndAcquireOnly) {
  const auto passed = [](Order stored, Order loaded) {
    return outcomes_of({{store(kX, relaxed), store(kY, stored)},
                        {load(kY, loaded), load(kX, relaxed)}});
  };
  EXPECT_FALSE(passed(release, acquire).contains({1, 0}));
  EXPECT_TRUE(passed(relaxed, acquire).contains({1, 0}));
  EXPECT_TRUE(passed(release, relaxed).contains({1, 0}));
  EXPECT_EQ(passed(release, acquire).size(), 3u);
}

TEST(ModelMemory, StoreThenLoadIsOrderedBySeqCstOnly) {
  const auto buffered = [](Order stored, Order loaded) {
    return outcomes_of({{store(kX, stored), load(kY, loaded)},
                        {store(kY, stored), load(kX, loaded)}})
        .contains({0, 0});
  };
  EXPECT_TRUE(buffered(release, acquire));
  EXPECT_TRUE(buffered(seq_cst, acquire));
  EXPECT_TRUE(buffered(release, seq_cst));
  EXPECT_FALSE(buffered(seq_cst, seq_cst));
}

// What settle() relies on: an exchange is no two-way fence unless it is seq_cst.
TEST(ModelMemory, AnExchangeIsNoFenceUnlessItIsSeqCst) {
  const auto both_missed = [](Order order) {
    return outcomes_of({{add(kX, order), load(kY, seq_cst)},
                        {store(kY, seq_cst), load(kX, seq_cst)}})
        .contains({0, 0, 0});
  };
  EXPECT_TRUE(both_missed(acq_rel));
  EXPECT_FALSE(both_missed(seq_cst));
}

TEST(ModelMemory, OneLocationNeverGoesBackwards) {
  const auto seen = outcomes_of({{store(kX, relaxed, 1), store(kX, relaxed, 2)},
                                 {load(kX, relaxed), load(kX, relaxed)}});
  EXPECT_FALSE(seen.contains({2, 1}));
  EXPECT_FALSE(seen.contains({1, 0}));
  EXPECT_TRUE(seen.contains({0, 2}));
}

TEST(ModelMemory, TwoReadersMayDisagreeOnIndependentWritesWithoutSeqCst) {
  const auto disagree = [](Order stored, Order loaded) {
    return outcomes_of({{store(kX, stored)},
                        {store(kY, stored)},
                        {load(kX, loaded), load(kY, loaded)},
                        {load(kY, loaded), load(kX, loaded)}})
        .contains({1, 0, 1, 0});
  };
  EXPECT_TRUE(disagree(release, acquire));
  EXPECT_FALSE(disagree(seq_cst, seq_cst));
}

TEST(ModelMemory, StoresMayBeOrderedAgainstTheProgramsOfOtherThreads) {
  const auto last = outcomes_of({{store(kX, relaxed, 1), store(kY, relaxed, 2), load(kY, relaxed)},
                                 {store(kY, relaxed, 1), store(kX, relaxed, 2), load(kX, relaxed)}});
  EXPECT_TRUE(last.contains({2, 2}));
}

TEST(ModelMemory, TwoExchangesNeverReadTheSameMessage) {
  const auto seen = outcomes_of({{add(kX, relaxed)}, {add(kX, relaxed)}});
  EXPECT_EQ(seen, (std::set<Outcome>{{0, 1}, {1, 0}}));
}

TEST(ModelMemory, ARelaxedExchangeCarriesAReleaseOn) {
  const auto seen = outcomes_of({{store(kY, relaxed), store(kX, release, 1)},
                                 {add(kX, relaxed)},
                                 {load(kX, acquire), load(kY, relaxed)}});
  EXPECT_FALSE(seen.contains({1, 2, 0}));
  EXPECT_TRUE(seen.contains({1, 2, 1}));
}

TEST(ModelMemory, PlainAccessesWithoutAnOrderAreARace) {
  const Outcome race{-1};
  const Instruction write{Act::WriteData};
  const Instruction read{Act::ReadData};
  EXPECT_TRUE(outcomes_of({{write}, {read}}).contains(race));
  EXPECT_TRUE(outcomes_of({{write}, {write}}).contains(race));
  EXPECT_FALSE(outcomes_of({{read}, {store(kX, relaxed)}}).contains(race));
  // An exchange that sees the other's orders them, whichever comes first, if it acquires.
  EXPECT_FALSE(outcomes_of({{write, store(kX, release)}, {load(kX, acquire)}}).contains(race));
}

}  // namespace

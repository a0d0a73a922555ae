#include "ring_model.hpp"

#include <cstring>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "step.hpp"

namespace fabric::model {

std::vector<Op> put(std::uint8_t lines) {
  return {{OpKind::Claim, 0, lines}, {OpKind::Commit, 0, 0}};
}

std::vector<Op> take_back(std::uint8_t lines) {
  return {{OpKind::Claim, 0, lines}, {OpKind::Abort, 0, 0}};
}

std::vector<Op> operator+(std::vector<Op> first, const std::vector<Op>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

RingModel::RingModel(Config config) : config_(std::move(config)) {
  const bool power_of_two = (config_.lines & (config_.lines - 1)) == 0;
  if (!power_of_two || config_.lines > kLinesMax || config_.start < config_.lines ||
      config_.writers.size() > kWritersMax) {
    throw std::invalid_argument("the model has no such ring");
  }
  for (const WriterScript& writer : config_.writers) {
    interchangeable_ &= writer == config_.writers.front();
  }
}

bool RingModel::uses(OpKind kind) const {
  for (const WriterScript& writer : config_.writers) {
    for (const Op& op : writer.ops) {
      if (op.kind == kind) return true;
    }
  }
  return false;
}

RingState RingModel::initial() const {
  const int writers = static_cast<int>(config_.writers.size());
  RingState state;
  state.memory = Memory(config_.mode, writers + 1 + (config_.watchdog ? 1 : 0));
  const Value start = static_cast<Value>(config_.start);
  for (const Location location : {kTail, kHead, kCommitted, kTaken, kReadPosition, kTakenPosition}) {
    state.memory.set_initial(location, start);
  }
  // The lap before left one committed record on each line: nothing is zeroed.
  for (Value back = 1; back <= config_.lines; back++) {
    const Value position = static_cast<Value>(start - back);
    const int line = position & (config_.lines - 1);
    state.ghost.stamp[line] = stamp_word(position, Stamp::Committed);
    state.ghost.length[line] = 1;
    state.ghost.owner[line] = position;
    state.memory.set_initial(
        static_cast<Location>(kStamp + line),
        config_.protocol.stamp_has_position ? state.ghost.stamp[line]
                                            : stamp_word(0, Stamp::Committed));
    state.memory.set_initial(static_cast<Location>(kLength + line), 1);
  }
  state.ghost.released = start;
  state.reader.position = state.reader.taken_position = start;
  if (config_.reader != ReaderKind::Honest) {
    state.reader.at = ReaderAt::Done;
    // A liar only stores: old messages need not be kept for it.
    state.memory.end_thread(writers);
  }
  if (config_.watchdog) state.memory.end_thread(writers + 1);
  Choice none;
  for (int writer = 0; writer < writers; writer++) {
    WriterStep(*this, state, writer, none, nullptr).start_op();
  }
  state.memory.trim();
  return state;
}

bool RingModel::step(State& state, int agent, Choice& choice, std::string* log) const {
  const int writers = static_cast<int>(config_.writers.size());
  bool stepped = false;
  if (agent < writers) {
    stepped = WriterStep(*this, state, agent, choice, log).run();
  } else if (agent == writers) {
    if (config_.reader == ReaderKind::Honest) {
      stepped = ReaderStep(*this, state, choice, log).run();
    } else if (config_.reader == ReaderKind::Liar) {
      stepped = LiarStep(*this, state, choice, log).run();
    }
  } else if (agent == writers + 1) {
    stepped = death_step(state, choice, log);
  } else if (config_.watchdog) {
    stepped = WatchdogStep(*this, state, choice, log).run();
  }
  if (stepped) state.memory.trim();
  return stepped;
}

// A process dies between any two steps. Its stores so far stay, and the kernel tells the other side.
bool RingModel::death_step(State& state, Choice& choice, std::string* log) const {
  if (state.shared.reader_dead || state.shared.broker_dead) return false;
  bool writing = false;
  for (const Writer& writer : state.writers) writing |= writer.at != WriterAt::Done;
  const bool reader = config_.reader_may_die && state.reader.at != ReaderAt::Done;
  const bool broker = config_.broker_may_die && writing;
  if (!reader && !broker) return false;
  if (reader && (!broker || choice.pick(2) == 0)) {
    state.shared.reader_dead = true;
    state.reader = Reader{};
    state.reader.at = ReaderAt::Done;
    state.memory.end_thread(reader_thread());
    if (log) *log = "the reader dies";
    return true;
  }
  state.shared.broker_dead = true;
  for (int writer = 0; writer < reader_thread(); writer++) {
    state.writers[writer] = Writer{};
    state.memory.end_thread(writer);
  }
  if (log) *log = "the broker dies";
  return true;
}

const char* RingModel::violation(const State& state) const {
  return state.shared.violation == Violation::None ? nullptr : name_of(state.shared.violation);
}

bool RingModel::finished(const State& state) const {
  for (const Writer& writer : state.writers) {
    if (writer.at != WriterAt::Done) return false;
  }
  const Reader& reader = state.reader;
  if (reader.at == ReaderAt::Done) return true;
  const bool asleep = reader.at == ReaderAt::FutexAsleep ||
                      (reader.at == ReaderAt::Decide && reader.idle);
  return !state.shared.broker_dead && asleep && reader.held_count == 0 && reader.position == state.memory.newest(kTail);
}

namespace {

// Only bytes without padding may be copied into a state's name.
template <typename Part>
char* put_bytes(char* out, const Part& part) {
  static_assert(std::has_unique_object_representations_v<Part>);
  std::memcpy(out, &part, sizeof part);
  return out + sizeof part;
}

template <typename Part>
const char* get_bytes(const char* in, Part& part) {
  std::memcpy(&part, in, sizeof part);
  return in + sizeof part;
}

}  // namespace

Memory::Threads RingModel::order_of(const State& state) const {
  Memory::Threads order{};
  for (int at = 0; at < kThreadsMax; at++) order[at] = at;
  if (!interchangeable_) return order;
  const auto before = [&](int one, int other) {
    const int parts = std::memcmp(&state.writers[one], &state.writers[other], sizeof(Writer));
    return parts != 0 ? parts < 0 : state.memory.compare_threads(one, other) < 0;
  };
  for (int from = 1; from < reader_thread(); from++) {
    for (int at = from; at > 0 && before(order[at], order[at - 1]); at--) {
      std::swap(order[at], order[at - 1]);
    }
  }
  return order;
}

std::string RingModel::pack(const State& state) const {
  std::array<char, kPackedMax + 1024> bytes;
  const Memory::Threads order = order_of(state);
  char* out = state.memory.pack(bytes.data(), order);
  for (int writer = 0; writer < reader_thread(); writer++) {
    out = put_bytes(out, state.writers[order[writer]]);
  }
  out = put_bytes(out, state.reader);
  out = put_bytes(out, state.ghost);
  out = put_bytes(out, state.shared);
  return {bytes.data(), out};
}

RingState RingModel::unpack(const std::string& bytes) const {
  RingState state;
  const char* in = state.memory.unpack(bytes.data());
  for (int writer = 0; writer < reader_thread(); writer++) {
    in = get_bytes(in, state.writers[writer]);
  }
  in = get_bytes(in, state.reader);
  in = get_bytes(in, state.ghost);
  get_bytes(in, state.shared);
  return state;
}

}  // namespace fabric::model

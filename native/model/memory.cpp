#include "memory.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace fabric::model {

namespace {

bool acquires(Order order) {
  return order == Order::Acquire || order == Order::AcqRel || order == Order::SeqCst;
}

bool releases(Order order) {
  return order == Order::Release || order == Order::AcqRel || order == Order::SeqCst;
}

}  // namespace

const char* name_of(Order order) {
  switch (order) {
    case Order::Relaxed: return "relaxed";
    case Order::Acquire: return "acquire";
    case Order::Release: return "release";
    case Order::AcqRel: return "acq_rel";
    case Order::SeqCst: return "seq_cst";
  }
  return "?";
}

void View::join(const View& other) {
  for (int at = 0; at < kLocations; at++) seen[at] = std::max(seen[at], other.seen[at]);
  written |= other.written;
  read |= other.read;
}

Memory::Memory(Mode mode, int threads) : mode_(mode), threads_(static_cast<std::uint8_t>(threads)) {
  counts_.fill(1);
  sc_.fill(0);
  views_.fill(initial_view());
  for (int at = 0; at < kLocations; at++) messages_[at] = Message{0, false, false, initial_view()};
}

Memory& Memory::operator=(const Memory& other) {
  mode_ = other.mode_;
  threads_ = other.threads_;
  ended_ = other.ended_;
  total_ = other.total_;
  counts_ = other.counts_;
  sc_ = other.sc_;
  std::copy_n(other.views_.begin(), threads_, views_.begin());
  std::copy_n(other.messages_.begin(), total_, messages_.begin());
  return *this;
}

int Memory::begin_of(int location) const {
  if (mode_ == Mode::SequentiallyConsistent) return location;
  int begin = 0;
  for (int at = 0; at < location; at++) begin += counts_[at];
  return begin;
}

Value Memory::newest(Location location) const {
  return messages_[begin_of(location) + counts_[location] - 1].value;
}

int Memory::oldest_readable(int thread, int location, Order order) const {
  const int own = views_[thread].seen[location];
  return order == Order::SeqCst ? std::max<int>(own, sc_[location]) : own;
}

void Memory::join_from(int thread, const Message& message, Order order) {
  if (message.has_view && acquires(order)) views_[thread].join(message.view);
}

Value Memory::load(int thread, Location location, Order order, Choice& choice) {
  if (mode_ == Mode::SequentiallyConsistent) return messages_[location].value;
  const int last = counts_[location] - 1;
  const int index = last - choice.pick(last - oldest_readable(thread, location, order) + 1);
  const Message& message = messages_[begin_of(location) + index];
  views_[thread].seen[location] = static_cast<std::uint8_t>(index);
  join_from(thread, message, order);
  return message.value;
}

void Memory::store(int thread, Location location, Value value, Order order, Choice& choice) {
  if (mode_ == Mode::SequentiallyConsistent) {
    messages_[location].value = value;
    return;
  }
  // Anywhere in modification order after what this thread has seen, as the standard allows.
  std::array<int, kMessagesMax> places{};
  int count = 0;
  const int begin = begin_of(location);
  for (int at = counts_[location]; at > oldest_readable(thread, location, order); at--) {
    if (at < counts_[location] && messages_[begin + at].follows) continue;
    places[count++] = at;
  }
  insert(thread, location, places[choice.pick(count)], value, false, order, nullptr);
}

Exchanged Memory::compare_exchange(int thread, Location location, Value expected, Value desired,
                                   Order won, Order lost, Choice& choice) {
  if (mode_ == Mode::SequentiallyConsistent) {
    const Value seen = messages_[location].value;
    if (seen == expected) messages_[location].value = desired;
    return {seen == expected, seen};
  }
  // A strong exchange: it fails only on another value, and that one may be stale.
  std::array<int, kMessagesMax> readable{};
  int count = 0;
  const int begin = begin_of(location);
  for (int at = counts_[location] - 1; at >= 0; at--) {
    const bool equal = messages_[begin + at].value == expected;
    if (at < oldest_readable(thread, location, equal ? won : lost)) continue;
    // Another read-modify-write stands behind it already.
    if (equal && at + 1 < counts_[location] && messages_[begin + at + 1].follows) continue;
    readable[count++] = at;
  }
  const int index = readable[choice.pick(count)];
  const Message read = messages_[begin + index];
  const bool equal = read.value == expected;
  views_[thread].seen[location] = static_cast<std::uint8_t>(index);
  join_from(thread, read, equal ? won : lost);
  if (equal) {
    insert(thread, location, index + 1, desired, true, won, read.has_view ? &read.view : nullptr);
  }
  return {equal, read.value};
}

Value Memory::exchange(int thread, Location location, Value value, Order order, Choice& choice) {
  if (mode_ == Mode::SequentiallyConsistent) return std::exchange(messages_[location].value, value);
  std::array<int, kMessagesMax> readable{};
  int count = 0;
  const int begin = begin_of(location);
  for (int at = counts_[location] - 1; at >= oldest_readable(thread, location, order); at--) {
    if (at + 1 < counts_[location] && messages_[begin + at + 1].follows) continue;
    readable[count++] = at;
  }
  const int index = readable[choice.pick(count)];
  const Message read = messages_[begin + index];
  views_[thread].seen[location] = static_cast<std::uint8_t>(index);
  join_from(thread, read, order);
  insert(thread, location, index + 1, value, true, order, read.has_view ? &read.view : nullptr);
  return read.value;
}

template <typename Visit>
void Memory::each_view(Visit visit) {
  for (int thread = 0; thread < threads_; thread++) visit(views_[thread]);
  for (int at = 0; at < total_; at++) {
    if (messages_[at].has_view) visit(messages_[at].view);
  }
}

void Memory::insert(int thread, int location, int index, Value value, bool follows, Order order,
                    const View* continued) {
  if (total_ == kMessagesMax) throw std::length_error("more messages than kMessagesMax");
  // The view of the read message is copied before the shift moves it.
  View carried = continued ? *continued : initial_view();
  const auto shift = [&](View& view) {
    if (view.seen[location] >= index) view.seen[location]++;
  };
  each_view(shift);
  if (continued) shift(carried);
  if (sc_[location] >= index) sc_[location]++;

  const int at = begin_of(location) + index;
  std::move_backward(messages_.begin() + at, messages_.begin() + total_,
                     messages_.begin() + total_ + 1);
  total_++;
  counts_[location]++;
  views_[thread].seen[location] = static_cast<std::uint8_t>(index);
  if (order == Order::SeqCst) sc_[location] = static_cast<std::uint8_t>(index);

  Message& message = messages_[at];
  message = Message{value, follows, continued || releases(order), carried};
  if (!message.has_view) return;
  if (!continued) message.view = views_[thread];
  else if (releases(order)) message.view.join(views_[thread]);
}

bool Memory::write_plain(int thread, std::uint8_t lines) {
  if (mode_ == Mode::SequentiallyConsistent) return true;
  const View& own = views_[thread];
  if ((own.written & own.read & lines) != lines) return false;
  // Whoever knows this write knows the reads before it.
  each_view([&](View& view) {
    view.written &= static_cast<std::uint8_t>(~lines);
    view.read |= lines;
  });
  views_[thread].written |= lines;
  return true;
}

bool Memory::read_plain(int thread, std::uint8_t lines) {
  if (mode_ == Mode::SequentiallyConsistent) return true;
  if ((views_[thread].written & lines) != lines) return false;
  each_view([&](View& view) { view.read &= static_cast<std::uint8_t>(~lines); });
  views_[thread].read |= lines;
  return true;
}

bool Memory::up_to_date(int thread, Location location) const {
  return mode_ == Mode::SequentiallyConsistent ||
         views_[thread].seen[location] == counts_[location] - 1;
}

int Memory::compare_threads(int one, int other) const {
  if (mode_ == Mode::SequentiallyConsistent) return 0;
  return std::memcmp(&views_[one], &views_[other], sizeof(View));
}

void Memory::end_thread(int thread) {
  ended_ |= static_cast<std::uint8_t>(1u << thread);
}

void Memory::see_all(int thread) {
  if (mode_ == Mode::SequentiallyConsistent) return;
  View& view = views_[thread];
  for (int at = 0; at < kLocations; at++) view.seen[at] = static_cast<std::uint8_t>(counts_[at] - 1);
  view.written = view.read = 0xff;
}

void Memory::trim() {
  if (mode_ == Mode::SequentiallyConsistent) return;
  for (int location = 0; location < kLocations; location++) {
    int oldest = counts_[location] - 1;
    for (int thread = 0; thread < threads_; thread++) {
      if ((ended_ >> thread) & 1) continue;
      oldest = std::min<int>(oldest, views_[thread].seen[location]);
    }
    if (oldest == 0) continue;
    const auto clamp = [&](std::uint8_t& seen) {
      seen = static_cast<std::uint8_t>(seen > oldest ? seen - oldest : 0);
    };
    each_view([&](View& view) { clamp(view.seen[location]); });
    clamp(sc_[location]);
    const int begin = begin_of(location);
    std::move(messages_.begin() + begin + oldest, messages_.begin() + total_,
              messages_.begin() + begin);
    total_ = static_cast<std::uint8_t>(total_ - oldest);
    counts_[location] = static_cast<std::uint8_t>(counts_[location] - oldest);
    messages_[begin].follows = false;
  }
}

namespace {

char* pack_byte(char* out, int value) {
  *out = static_cast<char>(value);
  return out + 1;
}

char* pack_view(char* out, const View& view) {
  char* const bitmap = out;
  out += sizeof(std::uint32_t);
  std::uint32_t present = 0;
  for (int at = 0; at < kLocations; at++) {
    if (view.seen[at] == 0) continue;
    present |= 1u << at;
    out = pack_byte(out, view.seen[at]);
  }
  std::copy_n(reinterpret_cast<const char*>(&present), sizeof present, bitmap);
  return pack_byte(pack_byte(out, view.written), view.read);
}

const char* unpack_view(const char* in, View& view) {
  std::uint32_t present = 0;
  std::copy_n(in, sizeof present, reinterpret_cast<char*>(&present));
  in += sizeof present;
  for (int at = 0; at < kLocations; at++) {
    view.seen[at] = (present >> at) & 1 ? static_cast<std::uint8_t>(*in++) : 0;
  }
  view.written = static_cast<std::uint8_t>(*in++);
  view.read = static_cast<std::uint8_t>(*in++);
  return in;
}

}  // namespace

static_assert(kLocations <= 32, "a view's bitmap has 32 bits");

char* Memory::pack(char* out, const Threads& order) const {
  out = pack_byte(pack_byte(out, static_cast<int>(mode_)), threads_);
  if (mode_ == Mode::SequentiallyConsistent) {
    for (int at = 0; at < kLocations; at++) out = pack_byte(out, messages_[at].value);
    return out;
  }
  std::uint8_t ended = 0;
  for (int at = 0; at < threads_; at++) {
    ended |= static_cast<std::uint8_t>(((ended_ >> order[at]) & 1) << at);
  }
  out = pack_byte(out, ended);
  out = std::copy(counts_.begin(), counts_.end(), out);
  out = std::copy(sc_.begin(), sc_.end(), out);
  for (int at = 0; at < total_; at++) {
    const Message& message = messages_[at];
    out = pack_byte(pack_byte(out, message.value), message.follows | message.has_view << 1);
    if (message.has_view) out = pack_view(out, message.view);
  }
  for (int at = 0; at < threads_; at++) {
    if (((ended >> at) & 1) == 0) out = pack_view(out, views_[order[at]]);
  }
  return out;
}

const char* Memory::unpack(const char* in) {
  mode_ = static_cast<Mode>(*in++);
  threads_ = static_cast<std::uint8_t>(*in++);
  counts_.fill(1);
  total_ = kLocations;
  if (mode_ == Mode::SequentiallyConsistent) {
    for (int at = 0; at < kLocations; at++) messages_[at].value = static_cast<Value>(*in++);
    return in;
  }
  ended_ = static_cast<std::uint8_t>(*in++);
  for (std::uint8_t& count : counts_) count = static_cast<std::uint8_t>(*in++);
  for (std::uint8_t& word : sc_) word = static_cast<std::uint8_t>(*in++);
  total_ = 0;
  for (const std::uint8_t count : counts_) total_ = static_cast<std::uint8_t>(total_ + count);
  for (int at = 0; at < total_; at++) {
    Message& message = messages_[at];
    message.value = static_cast<Value>(*in++);
    const char flags = *in++;
    message.follows = flags & 1;
    message.has_view = flags & 2;
    if (message.has_view) in = unpack_view(in, message.view);
  }
  for (int thread = 0; thread < threads_; thread++) {
    if (((ended_ >> thread) & 1) == 0) in = unpack_view(in, views_[thread]);
    else views_[thread] = initial_view();
  }
  return in;
}

}  // namespace fabric::model

// The memory that the modelled threads share: a "view machine", the operational form of the C++20
// memory model without load buffering.
//
// Each location keeps its stores as messages in modification order. A thread has a view: for each
// location the oldest message that it may still read. A load takes any message from there on, so a
// relaxed or acquire load may be stale. A release store attaches the writer's view to its message
// and an acquire load joins it; relaxed does neither. A read-modify-write reads a message and puts
// its own directly behind it, and carries on the view of what it read (the release sequence). A
// seq_cst access also keeps to `sc_`: it reads or writes nothing older than the last seq_cst store
// to that location. Plain accesses (payload, header) are checked for data races: each view knows, for
// each line, whether it has seen the last write and the last read.
//
// In sequentially consistent mode each location has one message and there are no views.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "explorer.hpp"

namespace fabric::model {

enum class Order : std::uint8_t { Relaxed, Acquire, Release, AcqRel, SeqCst };
const char* name_of(Order order);

enum class Mode { SequentiallyConsistent, Views };

inline constexpr int kLinesMax = 8;
inline constexpr int kThreadsMax = 5;
inline constexpr int kMessagesMax = 120;

inline constexpr int kPackedMax = 8192;

using Value = std::uint8_t;

// The shared words of the ring; stamp and length stand once for each line.
enum Location : std::uint8_t {
  kTail,
  kHead,
  kCommitted,
  kTaken,
  kPoisoned,
  kClosed,
  kSpaceWaits,
  kSpaceWaiting,
  kReadPosition,
  kTakenPosition,
  kWaiting,
  kDataWakes,
  kFutexLock,  // of the kernel: who takes it sees what was done under it before
  kStamp,
  kLength = kStamp + kLinesMax,
  kLocations = kLength + kLinesMax,
};

// No initializers here and in Message: a Memory is copied for each step, and only its used part.
struct View {
  std::array<std::uint8_t, kLocations> seen;
  // One bit for each line: knows its last plain write; knows its last plain read.
  std::uint8_t written;
  std::uint8_t read;

  void join(const View& other);
};

constexpr View initial_view() { return {{}, 0xff, 0xff}; }

struct Exchanged {
  bool won;
  Value seen;
};

class Memory {
 public:
  Memory() = default;
  Memory(Mode mode, int threads);
  Memory(const Memory& other) { *this = other; }
  Memory& operator=(const Memory& other);

  void set_initial(Location location, Value value) { messages_[location].value = value; }

  Value load(int thread, Location location, Order order, Choice& choice);
  void store(int thread, Location location, Value value, Order order, Choice& choice);
  Exchanged compare_exchange(int thread, Location location, Value expected, Value desired,
                             Order won, Order lost, Choice& choice);
  Value exchange(int thread, Location location, Value value, Order order, Choice& choice);
  // False: a data race.
  [[nodiscard]] bool write_plain(int thread, std::uint8_t lines);
  [[nodiscard]] bool read_plain(int thread, std::uint8_t lines);
  // Has the thread seen the newest store, so that a plain read of the word is no race?
  [[nodiscard]] bool up_to_date(int thread, Location location) const;

  // The newest value: for checks and end conditions, never for a modelled access.
  Value newest(Location location) const;
  // A thread that does nothing more no longer keeps old messages alive.
  void end_thread(int thread);
  // What the kernel does when a process has died: all its stores are there for `thread`.
  void see_all(int thread);
  // Any order of threads will do, as long as equal views compare equal.
  int compare_threads(int one, int other) const;
  // Forgets messages that no thread can read. Equal futures then have equal bytes.
  void trim();

  // At most kPackedMax bytes; the threads stand in the given order.
  using Threads = std::array<int, kThreadsMax>;
  char* pack(char* out, const Threads& order) const;
  const char* unpack(const char* in);

 private:
  struct Message {
    Value value;
    bool follows;  // of a read-modify-write: nothing comes between it and the one before
    bool has_view;
    View view;
  };

  int begin_of(int location) const;
  int oldest_readable(int thread, int location, Order order) const;
  void insert(int thread, int location, int index, Value value, bool follows, Order order,
              const View* continued);
  void join_from(int thread, const Message& message, Order order);
  template <typename Visit>
  void each_view(Visit visit);

  Mode mode_ = Mode::SequentiallyConsistent;
  std::uint8_t threads_ = 0;
  std::uint8_t ended_ = 0;  // one bit for each thread
  std::uint8_t total_ = kLocations;
  std::array<std::uint8_t, kLocations> counts_;
  std::array<std::uint8_t, kLocations> sc_;
  std::array<View, kThreadsMax> views_;
  std::array<Message, kMessagesMax> messages_;  // by location, then in modification order
};

}  // namespace fabric::model

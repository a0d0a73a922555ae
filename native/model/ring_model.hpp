// The ring's protocol as a transition system: one step is one atomic access of native/src, together
// with the private work and the plain accesses around it. README.md maps each step to its line.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "config.hpp"
#include "memory.hpp"

namespace fabric::model {

inline constexpr int kWritersMax = 3;
inline constexpr int kSlotsMax = 2;
inline constexpr int kHeldMax = 8;
// As a position: not a multiple of the line, which only a liar publishes.
inline constexpr Value kUnaligned = 0xff;
inline constexpr Value kNone = 0xfe;

enum class Stamp : std::uint8_t { Nothing = 0, Busy = 1, Committed = 2, Pad = 3 };

enum class Violation : std::uint8_t {
  None,
  Overlap,        // lines handed out that are unreleased or still being written
  GuardBroken,    // the write position met the read position
  DataRace,       // plain accesses without an order between them
  NotSettled,     // the reader accepted a record that is not there
  WrongBytes,     // the reader saw bytes of another record
  WrongLength,    // the reader saw an impossible length
  FalsePoison,    // an honest reader was called a liar
  FalseFull,      // FULL by an older head than this thread had accepted
  SettledTwice,   // a claim that its owner could not settle, or settled over another
  CommittedWrong, // `committed` left the records that are settled
  Lost,           // the end of the ring, and a settled record was not read
};
const char* name_of(Violation violation);

// What the writer does next: the access that its next step makes.
enum class WriterAt : std::uint8_t {
  ClosedLoad, PoisonedLoad, HeadLoad, TailLoad, AcceptedLoad, ReadPositionLoad, CommittedCheck,
  CommittedRecheck, RaiseLoad, RaiseExchange, HeadReload, FullRecheck, TailExchange, GapExchange,
  GapLength, GapStamp, RecordLength, BusyStamp, Settle, AdvanceCommitted, AdvanceTail,
  AdvanceStamp, AdvanceLength, AdvanceRecheck, AdvanceExchange, WaitingLoad, WaitingExchange,
  DataSignal, DataWakesAdd, FutexWake, SpaceNumber, SpaceWaitingStore, SpaceRecheck, Disarm, Asleep, SpaceMoved, TakenLoad,
  TakenPoisonedLoad, TakenPositionLoad, PoisonedStore, ClosedStore, Done,
};

// Where advance_committed() and wake_reader() return to.
enum class After : std::uint8_t { Nothing, Settled, GapBeforeRecord, GapOnly, Check, Full, NextOp };

struct Claimed {
  Value position = kNone;
  Value lines = 0;
};

struct Writer {
  WriterAt at = WriterAt::Done;
  std::uint8_t op = 0;
  After after_advance = After::Nothing;
  After after_wake = After::Nothing;
  bool ending = false;      // the reader is dead: abort what is open and stop
  Value head = 0, tail = 0, pad = 0;        // Space
  Value accepted = 0, read = 0;             // refresh_head(), taken_position()
  Value committed = 0, length = 0;          // advance_committed()
  Value raising = 0;                        // the Location to raise
  Value full_at = 0, number = 0;            // arm_space()
  std::uint8_t slot = 0;
  Stamp settle_to = Stamp::Nothing;
  std::array<Claimed, kSlotsMax> claims{};
};

enum class ReaderAt : std::uint8_t {
  Decide, Look, WaitingSet, LookAgain, WaitingClear, Header, TakenStore, ReadPositionStore,
  SpaceWaitingLoad, SpaceSignal, SpinLook, DataWakesLoad, FutexWaitingSet, FutexLookAgain, FutexWait,
  FutexAsleep, WokenLook, Done,
};

// What the reader says in `waiting`.
enum Waiting : Value { kAwake = 0, kWaitsOnPipe = 1, kWaitsOnFutex = 2 };

struct Held {
  Value position = 0;
  Value lines = 0;
  bool taken = false;
  bool released = false;
};

struct Reader {
  ReaderAt at = ReaderAt::Decide;
  bool idle = false;         // next() found nothing; wait for a byte in the pipe
  bool end_of_file = false;  // the broker is dead and the pipe is empty
  bool in_wait = false;      // inside wait(), whose caller then calls next()
  bool in_next = false;      // a gap is being given back inside next()
  Stamp found = Stamp::Nothing;
  Value position = 0, taken_position = 0, publish_taken = 0, publish_read = 0;
  Value signalled = 0, wait = 0;
  Value data_wakes = 0;
  std::uint8_t held_count = 0;
  std::array<Held, kHeldMax> held{};
};

// The truth, which no modelled access reads: for each line the stamp, length and payload owner that
// really stand there, and which lines belong to an open claim.
struct Ghost {
  std::array<Value, kLinesMax> stamp{};
  std::array<Value, kLinesMax> length{};
  std::array<Value, kLinesMax> owner{};
  std::uint8_t open = 0;
  Value released = 0;  // what the reader really gave back
};

struct Shared {
  std::uint8_t data_pipe = 0, space_pipe = 0;  // 1: holds a byte
  std::uint8_t lies = 0;
  bool reader_dead = false, broker_dead = false;
  Violation violation = Violation::None;
};

struct RingState {
  Memory memory;
  std::array<Writer, kWritersMax> writers{};
  Reader reader;
  Ghost ghost;
  Shared shared;
};

class RingModel {
 public:
  using State = RingState;

  explicit RingModel(Config config);

  State initial() const;
  // Writers, reader, death, watchdog: always in this order, unused ones never have a step.
  int agents() const { return static_cast<int>(config_.writers.size()) + 3; }
  bool step(State& state, int agent, Choice& choice, std::string* log) const;
  const char* violation(const State& state) const;
  bool finished(const State& state) const;
  std::string pack(const State& state) const;
  State unpack(const std::string& bytes) const;

  const Config& config() const { return config_; }
  int reader_thread() const { return static_cast<int>(config_.writers.size()); }
  bool uses(OpKind kind) const;

 private:
  // Writers with the same script are interchangeable: their states are sorted in a state's name.
  Memory::Threads order_of(const State& state) const;
  bool death_step(State& state, Choice& choice, std::string* log) const;
  Config config_;
  bool interchangeable_ = true;
};

}  // namespace fabric::model

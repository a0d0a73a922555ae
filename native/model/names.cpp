#include "names.hpp"

namespace fabric::model {

std::string name_of_thread(const RingModel& model, int thread) {
  if (thread < model.reader_thread()) return "writer " + std::to_string(thread);
  if (thread > model.reader_thread()) return "watchdog";
  return model.config().reader == ReaderKind::Liar ? "liar" : "reader";
}

std::string name_of_location(Location location) {
  switch (location) {
    case kTail: return "tail";
    case kHead: return "head_";
    case kCommitted: return "committed_";
    case kTaken: return "taken_";
    case kPoisoned: return "poisoned_";
    case kClosed: return "closed_";
    case kSpaceWaits: return "space_waits_";
    case kSpaceWaiting: return "space_waiting";
    case kReadPosition: return "read_position";
    case kTakenPosition: return "taken_position";
    case kWaiting: return "waiting";
    case kDataWakes: return "data_wakes";
    case kFutexLock: return "the futex's lock";
    default: break;
  }
  const bool stamp = location < kLength;
  return (stamp ? "stamp[" : "length[") + std::to_string(location - (stamp ? kStamp : kLength)) +
         "]";
}

std::string text_of(Location location, Value value) {
  if (location < kStamp || location >= kLength) {
    return value == kUnaligned ? "unaligned" : std::to_string(value);
  }
  static const char* const names[] = {"NOTHING", "BUSY", "COMMITTED", "PAD"};
  return std::to_string(value >> 2) + " " + names[value & 3];
}

const char* name_of(Violation violation) {
  switch (violation) {
    case Violation::None: return "none";
    case Violation::Overlap: return "overlap";
    case Violation::GuardBroken: return "guard broken";
    case Violation::DataRace: return "data race";
    case Violation::NotSettled: return "record not settled";
    case Violation::WrongBytes: return "wrong bytes";
    case Violation::WrongLength: return "wrong length";
    case Violation::FalsePoison: return "honest reader poisoned";
    case Violation::FalseFull: return "false FULL";
    case Violation::SettledTwice: return "settled twice";
    case Violation::CommittedWrong: return "committed is wrong";
    case Violation::Lost: return "settled record lost";
  }
  return "?";
}

}  // namespace fabric::model

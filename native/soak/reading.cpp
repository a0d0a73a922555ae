#include "reading.hpp"

#include <cstdio>

#include "payload.hpp"

namespace fabric::soak {

bool Reading::check(const Record& record) {
  PayloadHead head{};
  const char* wrong = nullptr;
  if (!payload_is_whole(record.payload, record.payload_bytes, head)) {
    wrong = "its checksum is wrong";
  } else if (head.writer >= kWritersMax || record.writer != head.writer) {
    wrong = "header and payload name different writers";
  } else if (head.number != next_[head.writer]) {
    wrong = head.number < next_[head.writer] ? "it came before" : "one before it is missing";
  } else if (record.batch_sequence != head.number) {
    wrong = "header and payload have different numbers";
  }
  if (wrong) {
    std::fprintf(stderr, "record at position %llu, writer %u, number %llu: %s\n",
                 static_cast<unsigned long long>(record.position), record.writer,
                 static_cast<unsigned long long>(record.batch_sequence), wrong);
    return false;
  }
  next_[head.writer]++;
  records_++;
  bytes_ += record.payload_bytes;
  return true;
}

void Reading::release_one() {
  const std::size_t pick = next_random(random_) % held_.size();
  ring_.take(held_[pick]);
  ring_.release(held_[pick]);
  held_[pick] = held_.back();
  held_.pop_back();
}

void Reading::release_all() {
  while (!held_.empty()) release_one();
}

bool Reading::drain() {
  const std::size_t hold = next_random(random_) % 12;
  for (;;) {
    const NextResult result = ring_.next();
    if (std::holds_alternative<RecordInvalid>(result)) {
      std::fprintf(stderr, "an invalid record\n");
      return false;
    }
    const auto* record = std::get_if<Record>(&result);
    if (!record) break;
    if (!check(*record)) return false;
    held_.push_back(record->position);
    while (held_.size() > hold) release_one();
  }
  // Nothing more came: whoever waits for space shall have all of it.
  release_all();
  return true;
}

}  // namespace fabric::soak

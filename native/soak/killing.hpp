// kill -9 of one's own process at the nth pass of a named test point.
#pragma once

#include <cstdint>

namespace fabric::soak {

struct Ledger;

// "" = at any point. Set before the threads start.
void kill_at(const char* point, std::uint64_t pass, Ledger* ledger);
void kill_nowhere();

// In the order in which a record passes them.
inline constexpr const char* kBrokerPoints[] = {
    "claim.head_loaded",    "claim.before_exchange", "claim.won",           "gap.before_stamp",
    "claim.busy",           "settle.before_exchange", "settle.exchanged",   "committed.looked",
    "wake.waiting_seen",    "head.accepted_loaded",  "head.read_loaded",    "full.before_answer",
    "gap.before_exchange",  "space.armed",           "wake.word_changed"};
inline constexpr const char* kConsumerPoints[] = {"next.waiting_set",     "next.passed",
                                                  "release.before_store", "release.stored",
                                                  "wait.waiting_set",     "wait.woken"};

}  // namespace fabric::soak

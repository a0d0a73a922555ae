#include "killing.hpp"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "fabric/test_point.hpp"
#include "ledger.hpp"

namespace fabric {
TestPointHook test_point_hook = nullptr;
}

namespace fabric::soak {

namespace {

const char* wanted = nullptr;
std::atomic<std::int64_t> passes_left{0};
Ledger* ledger_of_the_run = nullptr;

void on_point(const char* name) {
  if (*wanted && std::strcmp(name, wanted) != 0) return;
  if (passes_left.fetch_sub(1) != 1) return;
  ledger_of_the_run->killed_at_point = true;
  kill(getpid(), SIGKILL);
}

}  // namespace

void kill_at(const char* point, std::uint64_t pass, Ledger* ledger) {
  wanted = point;
  passes_left = static_cast<std::int64_t>(pass);
  ledger_of_the_run = ledger;
  test_point_hook = on_point;
}

void kill_nowhere() { test_point_hook = nullptr; }

}  // namespace fabric::soak

#include <cstdio>
#include <cstring>
#include "ring_model.hpp"
using namespace fabric::model;
static const char* filter = "";
static void show(const char* name, Config c) {
  if (!strstr(name, filter)) return;
  RingModel m(c);
  Report r = Explorer<RingModel>(m, 1500000).run();
  printf("%-34s %s %9u states %10zu steps fin %u %.2fs %s\n", name, c.mode==Mode::Views?"views":"sc   ", r.states, r.steps, r.finished, r.cpu_seconds, r.violation.empty()? (r.complete?"ok":"LIMIT"):r.violation.c_str());
  if (!r.violation.empty()) printf("%s", r.trace.c_str());
  fflush(stdout);
}
static std::vector<Op> two(std::uint8_t a, std::uint8_t b) {
  return {{OpKind::Claim,0,a},{OpKind::Claim,1,b},{OpKind::Commit,1,0},{OpKind::Commit,0,0}};
}
int main(int argc, char** argv) {
  if (argc > 1) filter = argv[1];
  std::vector<Op> taken = {{OpKind::Taken,0,0}};
  std::vector<Op> close = {{OpKind::Close,0,0}};
  for (Mode mode : {Mode::SequentiallyConsistent, Mode::Views}) for (bool wake : {false, true}) {
    Config b; b.mode = mode; b.wakeups = wake;
    printf("--- wake %d\n", wake);
    Config c = b;
    c.start=5; c.hold_max=2; c.writers = {{put(1)+put(2)},{put(1)}}; show("hold2 1 2|1", c);
    c = b; c.start=6; c.writers={{put(1)+put(3)}}; show("gap only", c);
    c = b; c.start=6; c.hold_max=2; c.writers={{put(1)+put(3)},{put(1)}}; show("gap only 2", c);
    c = b; c.start=5; c.writers={{two(1,1)},{put(1)}}; show("out of order", c);
    c = b; c.start=5; c.writers={{take_back(2)},{put(2)}}; show("abort", c);
    c = b; c.start=5; c.writers={{put(1)+taken},{put(2)}}; show("taken", c);
    c = b; c.start=5; c.writers={{put(2)},{close}}; show("close", c);
    c = b; c.start=5; c.reader_may_die=true; c.writers={{put(2)},{put(2)}}; show("reader dies", c);
    c = b; c.start=5; c.broker_may_die=true; c.writers={{put(2)},{put(2)}}; show("broker dies", c);
    if (!wake) {
    c = b; c.start=4; c.reader=ReaderKind::Liar; c.lies_max=2; c.writers={{put(2), WhenFull::GiveUp},{put(2), WhenFull::GiveUp}}; show("liar", c);
    c.writers={{put(2)+put(2), WhenFull::GiveUp},{put(2), WhenFull::GiveUp}}; show("liar 2 2|2", c);
    c.lies_max=1; c.writers={{put(1)+taken, WhenFull::GiveUp},{put(2), WhenFull::GiveUp}}; show("liar taken", c);
    }
    if (wake) {
    c = b; c.start=4; c.writers={{put(2)+put(2)+put(1), WhenFull::Wait}}; show("waits", c);
    c = b; c.start=4; c.writers={{put(3)+put(1), WhenFull::Wait}, {put(1), WhenFull::GiveUp}}; show("waits 3 1|1", c);
    c = b; c.start=4; c.protocol.rearm_after_idle_wakeup=false; c.writers={{put(1)+put(1)+put(1)+put(3), WhenFull::Wait}}; show("waits no rearm", c);
    c = b; c.start=4; c.reader_may_die=true; c.writers={{put(2)+put(2), WhenFull::Wait}}; show("waits reader dies", c);
    }
  }
}

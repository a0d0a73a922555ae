// What the kernel takes to wake a process that sleeps on a pipe, without a ring, an event loop or
// JavaScript: the least that any hand-over to a sleeping process costs on these cores.
//
//   pipe_ping CORE CORE COUNT
#include <sys/prctl.h>
#include <unistd.h>

#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "source.hpp"

namespace {

constexpr int kWarmPings = 500;

void put(int pipe_end, std::uint64_t word) {
  if (write(pipe_end, &word, sizeof word) != sizeof word) std::abort();
}

// False at the end of the file.
bool get(int pipe_end, std::uint64_t& word) {
  return read(pipe_end, &word, sizeof word) == sizeof word;
}

void answer(int in, int out) {
  for (std::uint64_t sent_ns = 0; get(in, sent_ns);) put(out, bench::now_ns() - sent_ns);
  _exit(0);
}

void print(const char* name, const std::vector<double>& values) {
  std::printf("\"%s\":[", name);
  for (std::size_t i = 0; i < values.size(); i++) std::printf("%s%.3f", i ? "," : "", values[i]);
  std::printf("]");
}

}  // namespace

int main(int count, char** words) {
  if (count != 4) {
    std::fprintf(stderr, "pipe_ping CORE CORE COUNT\n");
    return 2;
  }
  int there[2];
  int back[2];
  if (pipe(there) != 0 || pipe(back) != 0) std::abort();
  if (fork() == 0) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(there[1]);
    bench::pin(std::atoi(words[2]));
    answer(there[0], back[1]);
  }
  bench::pin(std::atoi(words[1]));
  std::vector<double> one_way;
  std::vector<double> round_trip;
  for (int i = -kWarmPings; i < std::atoi(words[3]); i++) {
    const std::uint64_t start = bench::now_ns();
    put(there[1], start);
    std::uint64_t way_ns = 0;
    if (!get(back[0], way_ns)) std::abort();
    if (i < 0) continue;
    one_way.push_back(static_cast<double>(way_ns) / 1000);
    round_trip.push_back(static_cast<double>(bench::now_ns() - start) / 1000);
  }
  std::printf("{");
  print("oneWayUs", one_way);
  std::printf(",");
  print("roundTripUs", round_trip);
  std::printf("}\n");
}

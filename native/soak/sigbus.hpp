// Cases that must not end in a signal, played in a child process so that one which does is told.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>

#include "fabric/memory.hpp"

namespace fabric::soak {

enum class Outcome { Sound = 0, Wrong = 1, NotPossible = 2, Threw = 3, Signal = 4 };

inline Outcome in_child(const std::function<Outcome()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    try {
      _exit(static_cast<int>(work()));
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      _exit(static_cast<int>(Outcome::Threw));
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? static_cast<Outcome>(WEXITSTATUS(status)) : Outcome::Signal;
}

// With the ring's descriptors and nothing else of it: mappings are not kept over fork.
inline Outcome in_child_of(const RingMemory& memory,
                           const std::function<Outcome(int data, int wctl, int rctl)>& work) {
  const std::vector<int> fds = memory.descriptors();
  return in_child([&] { return work(fds[0], fds[1], fds[2]); });
}

inline bool touches_all(const RingMemory& memory) {
  const std::size_t bytes = memory.writer()->capacity;
  std::memset(memory.data(), 0x5a, bytes);
  for (std::size_t at = 0; at < bytes; at += 512) {
    if (memory.data()[at] != std::byte{0x5a}) return false;
  }
  return true;
}

// A kernel or a container that does not allow the set-up is no failure of the ring; it is said.

}  // namespace fabric::soak

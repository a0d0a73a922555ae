// The two sides of a ring as two processes that share nothing but the descriptors which one sent to
// the other over a socket, as in the product.
#pragma once

#include <sys/types.h>

#include <functional>
#include <vector>

#include "fabric/memory.hpp"

namespace fabric::soak {

struct Pair {
  UniqueFd broker;
  UniqueFd consumer;
};

Pair socket_pair();

class Child {
 public:
  // Forked before any thread and any ring exists, so the child has neither.
  static Child start(const std::function<int()>& body);

  // 0 = ended well, 128 + number = ended by a signal, else the exit code.
  int wait();
  void kill() const;

 private:
  pid_t pid_ = -1;
};

void send_ring(int socket, RingMemory& memory);
RingAttachment receive_ring(int socket);

// Until something can be read, or the other end is gone. False: nothing came in `timeout_ms`.
bool wait_readable(std::vector<int> descriptors, int timeout_ms);
bool peer_is_gone(int socket);

int open_descriptors();

}  // namespace fabric::soak

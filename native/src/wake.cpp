#include "fabric/wake.hpp"

#include <unistd.h>

#include <cerrno>

namespace fabric {

Signal signal_pipe(int write_end) {
  const char byte = 1;
  for (;;) {
    if (write(write_end, &byte, 1) == 1) return Signal::Sent;
    if (errno == EINTR) continue;
    // A full pipe already holds a wake-up that nobody has read.
    return errno == EAGAIN ? Signal::AlreadyPending : Signal::PeerGone;
  }
}

Drain drain_pipe(int read_end) {
  char bytes[4096];
  for (;;) {
    const ssize_t count = read(read_end, bytes, sizeof bytes);
    if (count > 0) return Drain::Emptied;
    if (count == 0) return Drain::EndOfFile;
    if (errno == EINTR) continue;
    return errno == EAGAIN ? Drain::Emptied : Drain::EndOfFile;
  }
}

}  // namespace fabric

// The Unix control socket, as far as Node can't do it: descriptors are passed by sendmsg and
// recvmsg with SCM_RIGHTS.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fabric/memory.hpp"

namespace fabric {

inline constexpr std::size_t kReplyBytesMax = 1 << 20;
inline constexpr std::size_t kPassedDescriptorsMax = 16;

struct Credentials {
  pid_t pid;
  uid_t uid;
  gid_t gid;
};

struct Handshake {
  UniqueFd socket;
  std::vector<std::uint8_t> reply;  // the whole frame, length word included
  std::vector<UniqueFd> descriptors;
};

// One message that carries the descriptors; all of it is sent or RingFailure is thrown. Never
// blocks: on a fresh connection the socket's buffer is empty. Any thread.
void send_descriptors(int socket, std::span<const std::uint8_t> message,
                      std::span<const int> descriptors);

// Connects, sends `hello`, reads exactly one frame and not a byte more, for whoever adopts the
// socket reads on. Blocks up to `timeout_ms`: not for an event loop's thread. Throws RingFailure.
Handshake connect_unix(const std::string& path, std::span<const std::uint8_t> hello,
                       std::int64_t timeout_ms);

// The peer as it was when it connected.
Credentials peer_credentials(int socket);

// A descriptor that is readable once the peer's process has ended. Invalid = it has ended already.
// Throws RingFailure where the kernel has no such thing. Before Linux 6.5 it is found by its number,
// which a process that ended meanwhile may have passed on.
UniqueFd peer_process(int socket);

// No process of the same user may write this one's memory through ptrace calls from now on.
void harden_process();

}  // namespace fabric

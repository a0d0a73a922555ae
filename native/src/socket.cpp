#include "fabric/socket.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "fabric/errors.hpp"

namespace fabric {

namespace {

using Clock = std::chrono::steady_clock;

class Deadline {
 public:
  explicit Deadline(std::int64_t timeout_ms)
      : timeout_ms_(timeout_ms), at_(Clock::now() + std::chrono::milliseconds(timeout_ms)) {}

  int left_ms() const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(at_ - Clock::now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000));
  }

  // Until the socket is ready for `events`, or throws.
  void wait(int socket, short events, const char* what) const {
    for (;;) {
      pollfd entry{socket, events, 0};
      const int ready = poll(&entry, 1, left_ms());
      if (ready > 0) return;
      if (ready == 0) expired(what);
      if (errno != EINTR) {
        throw RingFailure(ErrorCode::HandshakeFailed, std::string("poll: ") + errno_text(errno));
      }
    }
  }

  [[noreturn]] void expired(const char* what) const {
    throw RingFailure(ErrorCode::HandshakeTimeout,
                      std::string(what) + " took longer than " + std::to_string(timeout_ms_) +
                          " ms",
                      "timeoutMs");
  }

 private:
  std::int64_t timeout_ms_;
  Clock::time_point at_;
};

[[noreturn]] void connect_failed(const std::string& path, int error) {
  throw RingFailure(ErrorCode::ConnectFailed,
                    "can't connect to " + path + ": " + errno_text(error), "path");
}

sockaddr_un address_of(const std::string& path, socklen_t& length) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty()) connect_failed("an empty path", ENOENT);
  if (path.size() >= sizeof address.sun_path) connect_failed(path, ENAMETOOLONG);
  std::memcpy(address.sun_path, path.data(), path.size());
  length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
  return address;
}

UniqueFd connect_by(const std::string& path, const Deadline& deadline) {
  socklen_t length = 0;
  const sockaddr_un address = address_of(path, length);
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) connect_failed(path, errno);
  while (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    if (errno == EINTR) continue;
    if (errno != EAGAIN) connect_failed(path, errno);
    // The listener's backlog is full; no event tells when it is not.
    if (deadline.left_ms() == 0) deadline.expired("connecting");
    poll(nullptr, 0, std::min(deadline.left_ms(), 5));
  }
  return fd;
}

void send_all(int socket, std::span<const std::uint8_t> bytes, const Deadline& deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      deadline.wait(socket, POLLOUT, "sending the hello");
    } else if (errno == EPIPE || errno == ECONNRESET) {
      return;  // refused before it listened: what it said about that can still be read
    } else if (errno != EINTR) {
      throw RingFailure(ErrorCode::HandshakeFailed, "sending the hello: " + errno_text(errno));
    }
  }
}

// Takes ownership of every descriptor of the message first; nothing may leak on any path.
bool collect(msghdr& message, std::vector<UniqueFd>& descriptors) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; i++) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof fd);
      descriptors.emplace_back(fd);
    }
  }
  // Cut short: this process is at its limit of open files, or the peer sent too many.
  return !(message.msg_flags & MSG_CTRUNC) && descriptors.size() <= kPassedDescriptorsMax;
}

std::size_t receive_some(int socket, std::span<std::uint8_t> into,
                         std::vector<UniqueFd>& descriptors, const Deadline& deadline) {
  alignas(cmsghdr) char control[CMSG_SPACE(kPassedDescriptorsMax * sizeof(int))];
  for (;;) {
    iovec part{into.data(), into.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t count = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) {
      deadline.wait(socket, POLLIN, "waiting for the reply");
      continue;
    }
    if (count < 0) {
      throw RingFailure(ErrorCode::HandshakeFailed, "reading the reply: " + errno_text(errno));
    }
    if (!collect(message, descriptors)) {
      throw RingFailure(ErrorCode::HandshakeFailed,
                        "not all descriptors arrived: the limit of open files is reached");
    }
    if (count == 0) {
      throw RingFailure(ErrorCode::HandshakeFailed, "the peer closed before it replied");
    }
    return static_cast<std::size_t>(count);
  }
}

void receive_exactly(int socket, std::span<std::uint8_t> into, std::vector<UniqueFd>& descriptors,
                     const Deadline& deadline) {
  while (!into.empty()) into = into.subspan(receive_some(socket, into, descriptors, deadline));
}

std::uint32_t little_endian(std::span<const std::uint8_t> bytes) {
  return static_cast<std::uint32_t>(bytes[0]) | static_cast<std::uint32_t>(bytes[1]) << 8 |
         static_cast<std::uint32_t>(bytes[2]) << 16 | static_cast<std::uint32_t>(bytes[3]) << 24;
}

}  // namespace

Handshake connect_unix(const std::string& path, std::span<const std::uint8_t> hello,
                       std::int64_t timeout_ms) {
  const Deadline deadline(timeout_ms);
  Handshake result;
  result.socket = connect_by(path, deadline);
  const int socket = result.socket.get();
  send_all(socket, hello, deadline);
  result.reply.resize(4);
  receive_exactly(socket, result.reply, result.descriptors, deadline);
  const std::size_t length = little_endian(result.reply);
  if (length < 4 || length > kReplyBytesMax) {
    throw RingFailure(ErrorCode::HandshakeFailed,
                      "a reply of " + std::to_string(length) + " bytes is not a frame");
  }
  result.reply.resize(length);
  receive_exactly(socket, std::span(result.reply).subspan(4), result.descriptors, deadline);
  return result;
}

void send_descriptors(int socket, std::span<const std::uint8_t> bytes,
                      std::span<const int> descriptors) {
  if (bytes.empty()) {
    // Descriptors travel with bytes; on a stream they would vanish without.
    throw RingFailure(ErrorCode::OptionInvalid, "message must hold at least one byte", "message");
  }
  if (descriptors.size() > kPassedDescriptorsMax) {
    throw RingFailure(ErrorCode::OptionInvalid,
                      "at most " + std::to_string(kPassedDescriptorsMax) + " descriptors",
                      "descriptors");
  }
  alignas(cmsghdr) char control[CMSG_SPACE(kPassedDescriptorsMax * sizeof(int))] = {};
  iovec part{const_cast<std::uint8_t*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    const std::size_t size = descriptors.size_bytes();
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(size);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(size);
    std::memcpy(CMSG_DATA(header), descriptors.data(), size);
  }
  ssize_t sent;
  do {
    sent = sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) throw RingFailure(ErrorCode::SendFailed, "sendmsg: " + errno_text(errno));
  if (static_cast<std::size_t>(sent) != bytes.size()) {
    throw RingFailure(ErrorCode::SendFailed, "only " + std::to_string(sent) + " of " +
                                                 std::to_string(bytes.size()) + " bytes sent");
  }
}

Credentials peer_credentials(int socket) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) {
    throw RingFailure(ErrorCode::SystemCallFailed, "SO_PEERCRED: " + errno_text(errno),
                      "socketFd");
  }
  return {credentials.pid, credentials.uid, credentials.gid};
}

UniqueFd peer_process(int socket) {
  // Numbers, because the headers of older systems lack the names.
  constexpr int kPeerPidfd = 77;
  constexpr long kPidfdOpen = 434;
  int fd = -1;
  socklen_t length = sizeof fd;
  if (getsockopt(socket, SOL_SOCKET, kPeerPidfd, &fd, &length) != 0 && errno == ENOPROTOOPT) {
    const Credentials peer = peer_credentials(socket);
    fd = static_cast<int>(syscall(kPidfdOpen, peer.pid, 0));
  }
  if (fd >= 0) return UniqueFd(fd);
  if (errno == ESRCH) return {};
  throw RingFailure(ErrorCode::SystemCallFailed, "the peer can't be watched: " + errno_text(errno),
                    "socketFd");
}

void harden_process() {
  if (prctl(PR_SET_DUMPABLE, 0) == 0) return;
  throw RingFailure(ErrorCode::SystemCallFailed, "PR_SET_DUMPABLE: " + errno_text(errno));
}

}  // namespace fabric

#include "processes.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "fabric/socket.hpp"

namespace fabric::soak {

namespace {

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "%s: %s\n", what, std::strerror(errno));
  std::exit(3);
}

}  // namespace

Pair socket_pair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) fail("socketpair");
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Child Child::start(const std::function<int()>& body) {
  std::fflush(nullptr);
  Child child;
  child.pid_ = fork();
  if (child.pid_ < 0) fail("fork");
  if (child.pid_ > 0) return child;
  signal(SIGPIPE, SIG_IGN);
  int code = 3;
  try {
    code = body();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  std::fflush(nullptr);
  _exit(code);
}

int Child::wait() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0) {
    if (errno != EINTR) fail("waitpid");
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void Child::kill() const { ::kill(pid_, SIGKILL); }

void send_ring(int socket, RingMemory& memory) {
  const std::uint8_t word[] = {1};
  send_descriptors(socket, word, memory.descriptors());
  memory.close_peer_descriptors();
}

RingAttachment receive_ring(int socket) {
  constexpr std::size_t kBytes = RingAttachment::kDescriptors * sizeof(int);
  std::uint8_t word = 0;
  iovec part{&word, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(kBytes)];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1) fail("no ring came");
  std::vector<UniqueFd> owned;
  std::array<int, RingAttachment::kDescriptors> numbers{};
  if (const cmsghdr* header = CMSG_FIRSTHDR(&message)) {
    std::memcpy(numbers.data(), CMSG_DATA(header), kBytes);
    for (const int number : numbers) owned.emplace_back(number);
  }
  return RingAttachment::attach(std::move(owned));
}

bool wait_readable(std::vector<int> descriptors, int timeout_ms) {
  std::vector<pollfd> entries;
  for (const int fd : descriptors) entries.push_back({fd, POLLIN, 0});
  for (;;) {
    const int ready = poll(entries.data(), entries.size(), timeout_ms);
    if (ready >= 0) return ready > 0;
    if (errno != EINTR) fail("poll");
  }
}

bool peer_is_gone(int socket) {
  pollfd entry{socket, POLLIN, 0};
  return poll(&entry, 1, 0) > 0 && (entry.revents & POLLHUP);
}

int open_descriptors() {
  int count = 0;
  for (int fd = 0; fd < 1024; fd++) count += fcntl(fd, F_GETFD) >= 0;
  return count;
}

}  // namespace fabric::soak

// What a peer answers to the hello: any bytes in any pieces, with any descriptors. connect_unix()
// returns a whole frame or says why not, and keeps no descriptor of a handshake that failed.
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <thread>

#include "fabric/errors.hpp"
#include "fabric/socket.hpp"
#include "input.hpp"

using namespace fabric;
using namespace fabric::fuzz;

namespace {

class Listener {
 public:
  Listener() {
    signal(SIGPIPE, SIG_IGN);
    char folder[] = "/tmp/fabric-fuzz-XXXXXX";
    require(mkdtemp(folder) != nullptr);
    path_ = std::string(folder) + "/s";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    fd_ = UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    require(bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    require(listen(fd_.get(), 8) == 0);
  }
  ~Listener() {
    unlink(path_.c_str());
    rmdir(path_.substr(0, path_.rfind('/')).c_str());
  }

  const std::string& path() const { return path_; }
  UniqueFd accept_one() const { return UniqueFd(accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC)); }

 private:
  std::string path_;
  UniqueFd fd_;
};

// One piece, with as many descriptors as the input says: more than the reader takes, or none.
void send_piece(int socket, int passed, Input& input) {
  const std::uint8_t shape = input.take<std::uint8_t>();
  const auto bytes = input.run(1 + shape % 16);
  if (bytes.empty()) return;
  const std::size_t count = shape < 128 ? 0 : shape % 24;
  int fds[24];
  for (int& fd : fds) fd = passed;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fds)] = {};
  iovec part{const_cast<std::uint8_t*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (count > 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(count * sizeof(int));
    std::memcpy(CMSG_DATA(header), fds, count * sizeof(int));
  }
  (void)!sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void serve(const Listener& listener, int passed, Input input) {
  const UniqueFd connection = listener.accept_one();
  // A length word of a size that can come, so that bodies are reached.
  if (input.take<std::uint8_t>() & 1) {
    const std::uint32_t length = 4 + input.take<std::uint8_t>();
    (void)!send(connection.get(), &length, sizeof length, MSG_NOSIGNAL);
  }
  while (!input.empty()) send_piece(connection.get(), passed, input);
}

int open_descriptors() {
  int count = 0;
  for (int fd = 0; fd < 64; fd++) count += fcntl(fd, F_GETFD) >= 0;
  return count;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Listener listener;
  // Not a socket of ours: a copy in flight would keep the connection open.
  static const UniqueFd passed(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int before = open_descriptors();
  std::thread peer(serve, std::cref(listener), passed.get(), Input(data, size));
  try {
    const std::uint8_t hello[] = {1};
    const Handshake shaken = connect_unix(listener.path(), hello, 60'000);
    require(shaken.reply.size() >= 4 && shaken.reply.size() <= kReplyBytesMax);
    require(shaken.descriptors.size() <= kPassedDescriptorsMax);
    for (const UniqueFd& fd : shaken.descriptors) {
      require((fcntl(fd.get(), F_GETFD) & FD_CLOEXEC) != 0);
    }
  } catch (const RingFailure& failure) {
    require(failure.code == ErrorCode::HandshakeFailed);
  }
  peer.join();
  require(open_descriptors() == before);
  return 0;
}

#include "fabric/socket.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <thread>

#include "fabric/errors.hpp"

using namespace fabric;

namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes frame(std::size_t length) {
  Bytes bytes(length, 7);
  for (int i = 0; i < 4; i++) bytes[static_cast<std::size_t>(i)] = length >> (8 * i) & 0xff;
  return bytes;
}

// A listener in a folder of its own, with a thread that serves one connection.
class Server {
 public:
  explicit Server(std::function<void(int)> serve, int backlog = 8) {
    char name[] = "/tmp/fabric-socket-XXXXXX";
    folder_ = mkdtemp(name);
    path = folder_ + "/broker.sock";
    listener_ = UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path.c_str());
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(listener_.get(), backlog), 0);
    if (!serve) return;
    thread_ = std::thread([this, serve = std::move(serve)] {
      const UniqueFd connection(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      char hello[2];
      if (recv(connection.get(), hello, 2, MSG_WAITALL) == 2) serve(connection.get());
      char rest;
      while (recv(connection.get(), &rest, 1, 0) > 0) {
      }
    });
  }
  ~Server() {
    if (thread_.joinable()) thread_.join();
    std::filesystem::remove_all(folder_);
  }
  std::string path;

 private:
  std::string folder_;
  UniqueFd listener_;
  std::thread thread_;
};

const Bytes kHello = {1, 2};

RingFailure failure(const std::string& path, std::int64_t timeout_ms = 20'000) {
  try {
    (void)connect_unix(path, kHello, timeout_ms);
  } catch (const RingFailure& failure) {
    return failure;
  }
  ADD_FAILURE() << "connected";
  return RingFailure(ErrorCode::Closed, "");
}

TEST(Socket, PassesDescriptorsWithTheReplyAndReadsNoByteMore) {
  UniqueFd file = anonymous_file("passed", 0);
  ASSERT_EQ(pwrite(file.get(), "secret", 6, 0), 6);
  Server server([&](int connection) {
    const int fds[] = {file.get(), file.get()};
    send_descriptors(connection, frame(100), fds);
    send_descriptors(connection, Bytes{42}, {});
  });
  Handshake result = connect_unix(server.path, kHello, 20'000);
  EXPECT_EQ(result.reply, frame(100));
  ASSERT_EQ(result.descriptors.size(), 2u);
  char text[6];
  EXPECT_EQ(pread(result.descriptors[1].get(), text, 6, 0), 6);
  EXPECT_EQ(std::memcmp(text, "secret", 6), 0);
  for (const UniqueFd& fd : result.descriptors) {
    EXPECT_TRUE(fcntl(fd.get(), F_GETFD) & FD_CLOEXEC);
  }
  // The next byte is still in the socket, for whoever adopts it.
  std::uint8_t byte = 0;
  EXPECT_EQ(fcntl(result.socket.get(), F_SETFL, 0), 0);
  EXPECT_EQ(recv(result.socket.get(), &byte, 1, 0), 1);
  EXPECT_EQ(byte, 42);
}

TEST(Socket, PutsAReplyTogetherThatArrivesInPieces) {
  Server server([](int connection) {
    const Bytes reply = frame(3000);
    for (std::size_t i = 0; i < reply.size(); i += 2) {
      EXPECT_EQ(send(connection, reply.data() + i, 2, MSG_NOSIGNAL), 2);
    }
  });
  EXPECT_EQ(connect_unix(server.path, kHello, 20'000).reply, frame(3000));
}

TEST(Socket, TakesAReplyUpToTheCapAndNothingBeyond) {
  for (const std::size_t length : {kReplyBytesMax, kReplyBytesMax + 1, std::size_t{4}}) {
    Server server([&](int connection) {
      const Bytes reply = frame(length);
      std::size_t sent = 0;
      while (sent < length) {
        const ssize_t count =
            send(connection, reply.data() + sent, length - sent, MSG_NOSIGNAL);
        if (count <= 0) return;
        sent += static_cast<std::size_t>(count);
      }
    });
    if (length <= kReplyBytesMax) {
      EXPECT_EQ(connect_unix(server.path, kHello, 20'000).reply.size(), length);
    } else {
      EXPECT_EQ(failure(server.path).code, ErrorCode::HandshakeFailed);
    }
  }
}

TEST(Socket, RefusesAFrameShorterThanItsLengthWord) {
  Server server([](int connection) {
    const Bytes reply = {3, 0, 0, 0};
    EXPECT_EQ(send(connection, reply.data(), 4, MSG_NOSIGNAL), 4);
  });
  EXPECT_EQ(failure(server.path).code, ErrorCode::HandshakeFailed);
}

TEST(Socket, SaysWhyItCannotConnect) {
  const RingFailure absent = failure("/tmp/fabric-no-such-socket");
  EXPECT_EQ(absent.code, ErrorCode::ConnectFailed);
  EXPECT_STREQ(absent.what(),
               "can't connect to /tmp/fabric-no-such-socket: ENOENT (No such file or directory)");
  const RingFailure too_long = failure("/tmp/" + std::string(200, 'x'));
  EXPECT_NE(std::string(too_long.what()).find("ENAMETOOLONG"), std::string::npos);
  std::string stale;
  {
    Server server(nullptr);
    stale = server.path + ".stale";
    std::filesystem::rename(server.path, stale = "/tmp/fabric-stale.sock");
  }
  const RingFailure refused = failure(stale);
  EXPECT_EQ(refused.code, ErrorCode::ConnectFailed);
  EXPECT_NE(std::string(refused.what()).find("ECONNREFUSED"), std::string::npos);
  std::filesystem::remove(stale);
}

TEST(Socket, GivesUpWhenNoReplyComes) {
  Server server(nullptr);
  const RingFailure late = failure(server.path, 50);
  EXPECT_EQ(late.code, ErrorCode::HandshakeTimeout);
  EXPECT_STREQ(late.what(), "waiting for the reply took longer than 50 ms");
}

TEST(Socket, GivesUpWhenNobodyAccepts) {
  Server server(nullptr, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, server.path.c_str());
  const UniqueFd first(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(connect(first.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(failure(server.path, 50).code, ErrorCode::HandshakeTimeout);
}

TEST(Socket, SaysThatThePeerClosed) {
  Server server([](int connection) { shutdown(connection, SHUT_RDWR); });
  EXPECT_EQ(failure(server.path).code, ErrorCode::HandshakeFailed);
}

TEST(Socket, FailsWithoutALeakAtTheLimitOfOpenFiles) {
  UniqueFd file = anonymous_file("passed", 0);
  Server server([&](int connection) {
    const int fds[] = {file.get(), file.get(), file.get()};
    send_descriptors(connection, frame(8), fds);
  });
  // Room for the socket of the client, that of the server, and one more.
  int highest = 0;
  for (int fd = 0; fd < 1024; fd++) {
    if (fcntl(fd, F_GETFD) >= 0) highest = fd;
  }
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  std::vector<UniqueFd> filling;
  for (int fd = 0; fd < highest; fd++) {
    if (fcntl(fd, F_GETFD) < 0) filling.emplace_back(fcntl(file.get(), F_DUPFD_CLOEXEC, fd));
  }
  const rlimit low{static_cast<rlim_t>(highest + 4), before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &low);
  const RingFailure failed = failure(server.path);
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(failed.code, ErrorCode::HandshakeFailed) << failed.what();
}

TEST(Socket, ReportsAPeerThatIsGoneWithoutASignal) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  const UniqueFd ours(pair[0]);
  close(pair[1]);
  signal(SIGPIPE, SIG_DFL);
  try {
    send_descriptors(ours.get(), frame(8), {});
    ADD_FAILURE() << "sent";
  } catch (const RingFailure& failure) {
    EXPECT_EQ(failure.code, ErrorCode::SendFailed);
    EXPECT_STREQ(failure.what(), "sendmsg: EPIPE (Broken pipe)");
  }
}

TEST(Socket, NeverBlocksOnASlowPeer) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  const UniqueFd ours(pair[0]);
  const UniqueFd theirs(pair[1]);
  EXPECT_THROW(send_descriptors(ours.get(), Bytes(8 << 20, 1), {}), RingFailure);
  EXPECT_THROW(send_descriptors(ours.get(), Bytes{}, {}), RingFailure);
}

TEST(Socket, KnowsThePeer) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  const UniqueFd ours(pair[0]);
  const UniqueFd theirs(pair[1]);
  const Credentials peer = peer_credentials(ours.get());
  EXPECT_EQ(peer.pid, getpid());
  EXPECT_EQ(peer.uid, getuid());
  EXPECT_EQ(peer.gid, getgid());
  EXPECT_THROW((void)peer_credentials(-1), RingFailure);
}

}  // namespace

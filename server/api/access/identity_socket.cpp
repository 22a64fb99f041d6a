#include "server/api/access/identity_socket.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "server/api/bind.hpp"
#include "server/api/local_address.hpp"

namespace quasi::server {
namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw BadConfiguration("listen: cannot bind " + path + ", which tells users who they are: " +
                         why + "; move the file away, or name another path");
}

}  // namespace

IdentitySocket::IdentitySocket(std::string path) : path_(std::move(path)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path_.size() >= sizeof address.sun_path) refuse(path_, "the path is too long");
  std::memcpy(address.sun_path, path_.data(), path_.size());
  if (!remove_socket(path_)) refuse(path_, "it is there and is no socket");
  socket_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket_ < 0 ||
      ::bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::chmod(path_.c_str(), 0660) != 0 || ::listen(socket_, 128) != 0) {
    const std::string why = std::strerror(errno);
    if (socket_ >= 0) ::close(socket_);
    refuse(path_, why);
  }
  stop_ = ::eventfd(0, EFD_CLOEXEC);
}

IdentitySocket::~IdentitySocket() {
  if (thread_.joinable()) {
    const std::uint64_t one = 1;
    (void)!::write(stop_, &one, sizeof one);
    thread_.join();
  }
  ::close(stop_);
  ::close(socket_);
  remove_socket(path_);
}

void IdentitySocket::serve(std::function<std::string(std::int64_t)> token_of) {
  token_of_ = std::move(token_of);
  thread_ = std::thread([this] { run(); });
}

void IdentitySocket::run() {
  for (;;) {
    pollfd waits[] = {{.fd = socket_, .events = POLLIN, .revents = 0},
                      {.fd = stop_, .events = POLLIN, .revents = 0}};
    if (::poll(waits, 2, -1) < 0 && errno != EINTR) return;
    if (waits[1].revents != 0) return;
    if (waits[0].revents == 0) continue;
    const int peer = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (peer < 0) {
      // Without free descriptors the connection stays in the queue; poll would report it at once.
      ::usleep(10'000);
      continue;
    }
    ucred credentials{};
    socklen_t size = sizeof credentials;
    if (::getsockopt(peer, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0) {
      const std::string line = token_of_(credentials.uid) + "\n";
      // The line fits the buffer of a new socket, so a peer that does not read costs no time.
      (void)!::send(peer, line.data(), line.size(), MSG_NOSIGNAL);
    }
    ::close(peer);
  }
}

}  // namespace quasi::server

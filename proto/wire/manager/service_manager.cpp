#include "proto/wire/manager/service_manager.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace quasi::wire {

std::string notify_manager(const std::string& state) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  if (path == nullptr || (*path != '/' && *path != '@')) return {};
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::strlen(path);
  if (length >= sizeof address.sun_path) return "NOTIFY_SOCKET is too long";
  std::memcpy(address.sun_path, path, length);
  if (*path == '@') address.sun_path[0] = '\0';  // an abstract name
  const int descriptor = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
  std::string failure;
  if (descriptor < 0 || ::sendto(descriptor, state.data(), state.size(), MSG_NOSIGNAL,
                                 reinterpret_cast<const sockaddr*>(&address), size) < 0)
    failure = std::strerror(errno);
  if (descriptor >= 0) ::close(descriptor);
  return failure;
}

Watchdog::Watchdog() {
  const char* interval = std::getenv("WATCHDOG_USEC");
  const char* process = std::getenv("WATCHDOG_PID");
  if (interval == nullptr) return;
  if (process != nullptr && std::strtoll(process, nullptr, 10) != ::getpid()) return;
  const std::int64_t us = std::strtoll(interval, nullptr, 10);
  if (us > 0) turn_limit_ = std::chrono::milliseconds(std::max<std::int64_t>(1, us / 4'000));
}

void Watchdog::turned() {
  if (!turn_limit_) return;
  const auto now = Clock::now();
  if (now < next_ping_) return;
  next_ping_ = now + *turn_limit_;
  notify_manager("WATCHDOG=1");
}

}  // namespace quasi::wire

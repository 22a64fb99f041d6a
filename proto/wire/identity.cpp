#include "proto/wire/identity.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>

#include "proto/wire/limits.hpp"

namespace quasi::wire {
namespace {

using Clock = std::chrono::steady_clock;

/// Closes the descriptor at the end of its scope.
struct Descriptor {
  explicit Descriptor(int value_) : value(value_) {}
  ~Descriptor() {
    if (value >= 0) ::close(value);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int value;
};

std::string read_line(int descriptor) {
  char text[limits::kAuthorizationBytes];
  std::size_t size = 0;
  while (size < sizeof text) {
    const ssize_t count = ::read(descriptor, text + size, sizeof text - size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    size += static_cast<std::size_t>(count);
  }
  const std::string whole(text, size);
  return whole.substr(0, whole.find_first_of("\r\n"));
}

/// A token in a file of its owner.
class TokenFile : public TokenSource {
 public:
  explicit TokenFile(std::string path) : path_(std::move(path)) { read(); }

  std::string token() override {
    const std::lock_guard lock(mutex_);
    if (Clock::now() - looked_at_ < std::chrono::seconds(5)) return token_;
    try {
      read();
    } catch (const TokenFileError&) {
      // The file is being replaced; the earlier token goes on being used.
    }
    return token_;
  }

 private:
  void read() {
    looked_at_ = Clock::now();
    const Descriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat found {};
    if (file.value < 0 || ::fstat(file.value, &found) != 0)
      throw TokenFileError("the token file " + path_ + " cannot be read: " + std::strerror(errno));
    if ((found.st_mode & 077) != 0)
      throw TokenFileError("the token file " + path_ + " can be read by others; run: chmod 600 " +
                           path_);
    const std::string text = read_line(file.value);
    if (!text.starts_with("qsi_") || text.find_first_of(" \t") != std::string::npos)
      throw TokenFileError("the token file " + path_ +
                           " holds no token: its only line must begin with qsi_");
    token_ = text;
  }

  const std::string path_;
  std::mutex mutex_;
  Clock::time_point looked_at_;
  std::string token_;
};

/// A token that the server gives to the user of this process.
class IdentityToken : public TokenSource {
 public:
  explicit IdentityToken(std::string path) : path_(std::move(path)) {}

  std::string token() override {
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    const bool is_fresh = !token_.empty() && now - fetched_at_ < std::chrono::minutes(5);
    // A server that asks for no tokens has no such socket, and is not asked at every call.
    if (is_fresh || now - tried_at_ < std::chrono::milliseconds(20)) return token_;
    tried_at_ = now;
    if (std::string answer = fetch(); !answer.empty()) {
      token_ = std::move(answer);
      fetched_at_ = now;
    }
    return token_;
  }

 private:
  std::string fetch() const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path_.size() >= sizeof address.sun_path) return {};
    std::memcpy(address.sun_path, path_.data(), path_.size());
    const Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    // A starting server answers once its store is open.
    const timeval patience{.tv_sec = 2, .tv_usec = 0};
    if (socket.value < 0 ||
        ::setsockopt(socket.value, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0 ||
        ::connect(socket.value, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      return {};
    const std::string line = read_line(socket.value);
    return line.starts_with("qsu_") ? line : std::string();
  }

  const std::string path_;
  std::mutex mutex_;
  Clock::time_point tried_at_;
  Clock::time_point fetched_at_;
  std::string token_;
};

}  // namespace

std::string identity_path(const std::string& socket_path) { return socket_path + ".identity"; }

std::unique_ptr<TokenSource> token_source(const std::string& address,
                                          const std::string& token_file) {
  if (!token_file.empty()) return std::make_unique<TokenFile>(token_file);
  if (address.starts_with("unix:"))
    return std::make_unique<IdentityToken>(identity_path(address.substr(5)));
  return nullptr;
}

}  // namespace quasi::wire

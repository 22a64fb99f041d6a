#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <thread>

namespace quasi::server {

/// A Unix socket that tells its peers who they are. The kernel names the user of each connection
/// (SO_PEERCRED); the answer is one line with a token of that user, or an empty line. gRPC itself
/// does not show the user of a call.
class IdentitySocket {
 public:
  /// Binds the socket, so that peers can wait for the answer. A socket that a killed server left is
  /// removed.
  /// @throws BadConfiguration if the path cannot be bound.
  explicit IdentitySocket(std::string path);
  /// Stops answering and removes the socket.
  ~IdentitySocket();
  IdentitySocket(const IdentitySocket&) = delete;
  IdentitySocket& operator=(const IdentitySocket&) = delete;

  /// Begins to answer on a thread of its own. `token_of` maps a user id to a token, or to "".
  void serve(std::function<std::string(std::int64_t uid)> token_of);

 private:
  void run();
  std::string path_;
  int socket_ = -1;
  int stop_ = -1;  ///< becomes readable at the end
  std::function<std::string(std::int64_t)> token_of_;
  std::thread thread_;
};

}  // namespace quasi::server

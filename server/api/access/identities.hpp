#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/api/access/identity_socket.hpp"
#include "server/api/services.hpp"

namespace quasi::server {

/// The users of this machine: maps a user id to its principal and gives it a token. The server's
/// own user and root are admins, and the users of `worker_uids` are workers. Any other user becomes
/// a principal with the role `user` at its first visit if `enrol_users` allows it.
class Identities {
 public:
  /// Binds a socket beside each Unix socket of the server. It binds none if tokens are not
  /// required.
  /// @throws BadConfiguration.
  Identities(const std::vector<std::string>& addresses, bool require_tokens);

  /// Begins to answer. `services` must outlive `stop`.
  void serve(Services& services);
  void stop() { sockets_.clear(); }

 private:
  std::vector<std::unique_ptr<IdentitySocket>> sockets_;
};

/// A token of 15 minutes for the user, or "" if it is refused. It waits for the writer.
std::string session_of_uid(Services& services, std::int64_t uid);

}  // namespace quasi::server

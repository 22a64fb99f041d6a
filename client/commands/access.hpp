#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/session/session.hpp"

namespace quasi::client {

struct AdminOptions {
  std::vector<std::string> words;  ///< users | user NAME | token NAME | revoke KEY
  std::string role, tenant;
  std::optional<std::uint32_t> uid;
  bool disable = false, enable = false;
  std::string lifetime;  ///< of a new token
  std::string delay;     ///< until a token ends
  std::string output;    ///< file for a new token, for its owner alone
};

/// `quasi whoami` prints the caller's name, role and tenant, as the server sees them.
ExitStatus whoami(Session& session);

/// `quasi admin` lists and changes who may call the server, and makes and ends tokens.
ExitStatus admin(Session& session, const AdminOptions& options);

}  // namespace quasi::client

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/commands/orders/orders.hpp"
#include "client/commands/turns/usage.hpp"
#include "client/session/session.hpp"

namespace quasi::client {

struct AdminOptions {
  std::vector<std::string> words;  ///< the action and its names
  std::string role, tenant;
  std::optional<std::uint32_t> uid;
  bool disable = false, enable = false;
  std::string lifetime;             ///< of a new token or code
  std::string scopes;               ///< of a new token or code, with commas; "": all of them
  std::optional<std::string> pool;  ///< of a worker; "": any
  std::string delay;                ///< until a token ends
  std::string output;               ///< file for a new token, for its owner alone
  QuotaOptions quota;               ///< of: quota user NAME, quota tenant NAME
  OrderOptions order;               ///< of orders about workers and running jobs
};

/// `quasi whoami` prints the caller's name, role and tenant and the scopes of a narrowed
/// token, as the server sees them.
ExitStatus whoami(Session& session);

/// `quasi admin` lists and changes who may call the server, and makes and ends tokens.
ExitStatus admin(Session& session, const AdminOptions& options);

struct LoginOptions {
  std::string code;     ///< "-" or "": read from standard input
  std::string context;  ///< name of the context to write; "": the server's host
  bool renew = false;   ///< replace the token of a context by a new one
};

/// `quasi login` exchanges a one-time code for a token and writes a context: its address, a file
/// with the CA of the server and a file of mode 0600 with the token.
ExitStatus login(Console& console, const Environment& environment, const LoginOptions& options);

/// `quasi login --renew` replaces the token in the file of the context by a new one. The old token
/// ends a day later, so that other programs with a copy of it have time.
ExitStatus renew_token(Session& session);

}  // namespace quasi::client

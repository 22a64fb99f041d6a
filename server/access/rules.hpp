#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "server/access/principal.hpp"

namespace quasi::server {

/// The right to call one method.
struct Rule {
  std::string_view method;  ///< name of the method without its service, e.g. "SubmitJobs"
  Role least;               ///< the least role among people
  bool workers;             ///< workers may call it, too
  TokenScopes scopes;       ///< a person's token opens the method if it has one of these
};

/// One rule for each method of the services in proto/quasi/v1. A method without a rule can be
/// called by no one. A rule without a scope does not compile.
std::span<const Rule> rules();

/// True for the one method that is called without a token, because its caller has none yet.
bool needs_no_token(std::string_view method);

/// True if the role may call the method.
bool may_call(Role role, std::string_view method);

/// Returns the scopes of which a token needs one to call the method; without a method, none.
TokenScopes scopes_for(std::string_view method);

}  // namespace quasi::server

#pragma once

#include <string>

#include "client/commands/submit.hpp"
#include "client/session/session.hpp"

namespace quasi::client {

struct ValidateOptions {
  JobArguments job;
  bool offline = false;  ///< do not ask the server
};

/// `quasi validate` checks the deck by quasi-engine, the limits by this program, and the rules of
/// the server if one answers.
ExitStatus validate(Session& session, const ValidateOptions& options);

}  // namespace quasi::client

#pragma once

#include <string>

#include "client/commands/submit.hpp"
#include "client/session/session.hpp"

namespace quasi::client {

struct ValidateOptions {
  JobArguments job;
  bool offline = false;  ///< ask no server
};

/// `quasi validate`: the deck by quasi-engine beside this program, the limits here, and the rules
/// of the server if one answers.
ExitStatus validate(Session& session, const ValidateOptions& options);

}  // namespace quasi::client

#pragma once

#include <string>
#include <vector>

#include "client/session/session.hpp"

namespace quasi::client {

/// Begin here: client/commands/turns changes the order in which jobs start.
struct HoldOptions {
  std::vector<std::string> jobs;
  std::string reason;
};

struct ReprioritiseOptions {
  std::string job;   ///< id, name, "last" or "@"
  int priority = 0;  ///< -100 to 100
};

/// `quasi hold` keeps waiting jobs from starting. `quasi release` lets them wait for a worker
/// again.
ExitStatus hold(Session& session, const HoldOptions& options);
ExitStatus release(Session& session, const HoldOptions& options);

/// `quasi reprioritise` sets the priority of a job that has not ended.
ExitStatus reprioritise(Session& session, const ReprioritiseOptions& options);

}  // namespace quasi::client

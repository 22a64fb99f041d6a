#pragma once

#include <string>
#include <vector>

#include "client/session/session.hpp"

namespace quasi::client {

struct WhyOptions {
  std::vector<std::string> jobs;
};

/// `quasi why` explains why jobs do not run yet.
ExitStatus why(Session& session, const WhyOptions& options);

}  // namespace quasi::client

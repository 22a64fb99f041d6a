#pragma once

#include <string>

#include "client/session/session.hpp"

namespace quasi::client {

struct LogsOptions {
  std::string job;
  unsigned attempt = 0;  ///< 0: the newest
  bool follow = false;
};

/// `quasi logs` prints the bytes as the engine wrote them, on a terminal without control
/// characters. Following survives restarts of the server and continues with later attempts of the
/// job.
ExitStatus logs(Session& session, const LogsOptions& options);

}  // namespace quasi::client

#pragma once

#include <string>
#include <vector>

#include "client/session/session.hpp"

namespace quasi::client {

struct CancelOptions {
  std::vector<std::string> jobs;
  std::string reason;
  bool yes = false;  ///< several jobs need no confirmation
};

struct DeleteOptions {
  std::vector<std::string> jobs;
  std::string reason;
  bool yes = false;    ///< several jobs need no confirmation
  bool force = false;  ///< jobs that have not ended are cancelled first
};

/// `quasi cancel` stops jobs, or takes them out of the queue.
ExitStatus cancel(Session& session, const CancelOptions& options);

/// `quasi delete` removes jobs that have ended, with their results and logs, from the server.
ExitStatus delete_jobs(Session& session, const DeleteOptions& options);

}  // namespace quasi::client

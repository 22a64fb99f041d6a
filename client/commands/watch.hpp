#pragma once

#include <string>
#include <vector>

#include "client/commands/follow.hpp"
#include "client/session/session.hpp"

namespace quasi::client {

struct WatchOptions {
  std::vector<std::string> jobs;  ///< as typed; empty: every job that has not ended
};

struct WaitOptions {
  std::vector<std::string> jobs;
  bool any = false;
};

/// `quasi watch`: shows jobs move, live on a terminal and as lines elsewhere, then their results.
ExitStatus watch(Session& session, const WatchOptions& options);

/// `quasi wait`: silent until the jobs have ended; the states are its result.
ExitStatus wait(Session& session, const WaitOptions& options);

enum class Narration { kShown, kSilent };

/// Follows jobs to their end, says what happens and prints what came out; the common part of watch,
/// wait and submit.
///
/// @param head  fields that stand first in the document of --json, e.g. the submission's
ExitStatus follow_and_report(Session& session, const std::vector<std::string>& job_ids, Until until,
                             Narration narration, const Json& head);

}  // namespace quasi::client

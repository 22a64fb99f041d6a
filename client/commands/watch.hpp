#pragma once

#include <string>
#include <vector>

#include "client/session/follow.hpp"
#include "client/session/session.hpp"

namespace quasi::client {

struct WatchOptions {
  std::vector<std::string> jobs;  ///< as typed; empty: every job that has not ended
  std::string notify;             ///< shell command to run for each job that ends
};

struct WaitOptions {
  std::vector<std::string> jobs;
  bool any = false;
  std::string notify;  ///< shell command to run for each job that ends
};

/// `quasi watch` shows the progress of jobs, live on a terminal and as lines elsewhere, and then
/// prints their results.
ExitStatus watch(Session& session, const WatchOptions& options);

/// `quasi wait` prints nothing until the jobs have ended, except that no worker answers. Its result
/// is their states.
ExitStatus wait(Session& session, const WaitOptions& options);

enum class Narration { kShown, kSilent };

/// Follows jobs to their end, reports their events and prints their results. It is the common part
/// of watch, wait and submit.
///
/// @param head  the first fields of the document of --json, e.g. those of the submission
/// @param notify  a shell command that runs on this machine for each job that ends while it is
/// followed. Its arguments $1, $2 and $3 are the job's id, name and state. "": none
ExitStatus follow_and_report(Session& session, const std::vector<std::string>& job_ids, Until until,
                             Narration narration, const Json& head, const std::string& notify = "");

}  // namespace quasi::client

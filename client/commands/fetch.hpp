#pragma once

#include <string>
#include <vector>

#include "client/session/session.hpp"

namespace quasi::client {

struct FetchOptions {
  std::vector<std::string> jobs;
  std::string directory;               ///< "": one named by the job's id; several jobs: below it
  std::vector<std::string> artifacts;  ///< names; empty: all
  bool force = false;                  ///< replace files that differ
  bool silent = false;                 ///< print nothing
};

/// `quasi fetch`: results into a directory, each verified by its digest. A broken download is
/// continued, by this call or by the next one: NAME.part holds what came.
ExitStatus fetch(Session& session, const FetchOptions& options);

}  // namespace quasi::client

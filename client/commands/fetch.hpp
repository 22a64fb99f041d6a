#pragma once

#include <string>
#include <vector>

#include "client/session/session.hpp"

namespace quasi::client {

struct FetchOptions {
  std::vector<std::string> jobs;
  std::string directory;  ///< "": named by the job's id; with several jobs, their common parent
  std::vector<std::string> artifacts;  ///< names; empty: all
  bool force = false;                  ///< replace files that differ
  bool silent = false;                 ///< print nothing
  bool inputs = false;                 ///< fetch the inputs instead of the results
};

/// `quasi fetch` downloads results into a directory and verifies each file by its digest. NAME.part
/// holds the bytes of a broken download, and this call or a later one continues it.
ExitStatus fetch(Session& session, const FetchOptions& options);

}  // namespace quasi::client

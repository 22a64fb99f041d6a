#pragma once

#include <string>
#include <vector>

#include "client/session/session.hpp"

namespace quasi::client {

struct TableOptions {
  std::vector<std::string> jobs;  ///< a set of jobs, or jobs
  std::string output;             ///< file; empty: standard output
};

/// `quasi table` prints a set of jobs as CSV: one row a job, with the values of its axes, its state
/// and the figures of its summary.
ExitStatus table(Session& session, const TableOptions& options);

}  // namespace quasi::client

#pragma once

#include <map>
#include <string>
#include <vector>

#include "client/session/session.hpp"
#include "quasi/v1/job.pb.h"

namespace quasi::client {

/// The exit status for the ends of jobs: 0 if all succeeded, 3 if all failed, 4 if all were
/// cancelled. A mixture gives 14 with a success among them and 3 without one. Jobs that have not
/// ended are ignored.
ExitStatus status_of_jobs(const std::vector<v1::Job>& jobs);

/// A job with all its fields and, after a success, the table that its engine wrote (table.txt).
struct Outcome {
  v1::Job job;
  std::string table;  ///< "" if there is none
};
Outcome fetch_outcome(Session& session, const std::string& job_id);

/// The outcome as text: the table of a success, the reason of a failure.
std::string outcome_text(const Console& console, const Outcome& outcome, bool has_heading);

/// A summary as lines of "name  value", for a kind whose engine writes no table. Long values are
/// left out.
std::string summary_text(const std::string& summary_json);

}  // namespace quasi::client

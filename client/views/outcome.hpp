#pragma once

#include <map>
#include <string>
#include <vector>

#include "client/session/session.hpp"
#include "quasi/v1/job.pb.h"

namespace quasi::client {

/// What the ends of jobs mean for the exit status: all succeeded 0; all failed 3, all cancelled 4;
/// a mixture of ends with a success among them 14, without one 3. Jobs that have not ended count
/// as nothing.
ExitStatus status_of_jobs(const std::vector<v1::Job>& jobs);

/// Fetches a job with everything, and for a success the table that its engine wrote (table.txt).
struct Outcome {
  v1::Job job;
  std::string table;  ///< "" if there is none
};
Outcome fetch_outcome(Session& session, const std::string& job_id);

/// The outcomes for people: the table of each success, the reason of each failure.
std::string outcome_text(const Console& console, const Outcome& outcome, bool with_heading);

/// Lines "name  value" of a summary, for a kind whose engine wrote no table: what is short enough.
std::string summary_text(const std::string& summary_json);

}  // namespace quasi::client

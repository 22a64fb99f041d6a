#pragma once

#include <string>
#include <vector>

#include "client/session/session.hpp"

namespace quasi::client {

struct ListOptions {
  std::vector<std::string> states;  ///< any of these words; "active" and "ended" are sets
  std::vector<std::string> kinds;
  std::vector<std::string> labels;  ///< "key=value"; all must match
  std::string name;                 ///< prefix of the name
  std::string since;                ///< a duration before the present
  std::string until;
  int limit = 20;
  bool all = false;
  bool oldest_first = false;
  std::string set;    ///< jobs of this set
  bool sets = false;  ///< list the sets of jobs instead
};

struct ShowOptions {
  std::vector<std::string> jobs;
};

ExitStatus list(Session& session, const ListOptions& options);
ExitStatus show(Session& session, const ShowOptions& options);

/// The table of `quasi list`; only the ids for kName. It is public for tests.
std::string jobs_table(const Console& console, const std::vector<v1::Job>& jobs,
                       std::int64_t now_ms);
/// The page of `quasi show` for one job. `waiting` says why a queued job waits; "": not stated.
std::string job_page(const Console& console, const v1::Job& job, std::int64_t now_ms,
                     const std::string& waiting = "");

}  // namespace quasi::client

#pragma once

#include <string>
#include <vector>

#include "client/session/session.hpp"

namespace quasi::client {

/// Resolves typed words to full ids. A word is a full id, a unique prefix, the name of exactly one
/// job, `last` or `@`. The id of a set of jobs stands for all of its jobs. A prefix has at least 6
/// characters after "j_". `last` means every job of the newest submission from this machine. `@`
/// reads words from standard input, separated by blanks or newlines. Duplicates are dropped; the
/// order stays.
///
/// @throws Failure: kUsage for a name of several jobs, kNotFound for a word without a job.
std::vector<std::string> resolve_job_ids(Session& session, const std::vector<std::string>& typed);

/// Resolves a word that must name exactly one job.
std::string resolve_job_id(Session& session, const std::string& typed);

}  // namespace quasi::client

#pragma once

#include <string>
#include <vector>

#include "client/session/session.hpp"

namespace quasi::client {

/// Full ids for what was typed: full ids, unique beginnings of at least 6 characters after "j_",
/// `last` (every job of the newest submission from here), `@` (ids from standard input, separated
/// by blanks or newlines). Duplicates are dropped, the order stays.
///
/// @throws Failure: kUsage for what cannot be an id, kNotFound for what no job has.
std::vector<std::string> resolve_job_ids(Session& session, const std::vector<std::string>& typed);

/// As above where exactly one job makes sense.
std::string resolve_job_id(Session& session, const std::string& typed);

}  // namespace quasi::client

#pragma once

#include "client/commands/submit.hpp"

namespace quasi::client {

/// Adds the jobs that --after, --after-any and --take name to a job. The words name jobs as
/// everywhere.
/// @throws Failure naming the flag
void add_waits(Session& session, const JobArguments& arguments, v1::JobSpec& spec);

}  // namespace quasi::client

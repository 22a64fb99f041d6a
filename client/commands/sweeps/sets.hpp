#pragma once

#include "client/session/session.hpp"

namespace quasi::client {

/// `quasi list --sets`: the sets of jobs, newest first, with their jobs by state.
/// @param limit  number of sets; 0: all
ExitStatus list_sets(Session& session, int limit);

/// `quasi show SET`: a set with its axes, its limits and its jobs by state.
ExitStatus show_set(Session& session, const v1::JobSet& set);

}  // namespace quasi::client

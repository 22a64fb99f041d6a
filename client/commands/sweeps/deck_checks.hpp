#pragma once

#include "client/commands/submit.hpp"

namespace quasi::client {

/// Has quasi-engine check the decks of jobs on this machine, and prints its warnings.
/// @param overlaid  files are laid over the deck, which only the worker can check
/// @throws Failure naming deck and key
void check_decks(Session& session, const std::vector<JobRequest>& requests, bool overlaid);

/// Checks a sweep: its limits, and the decks of its first job and of jobs along each axis.
void check_sweep(Session& session, const SubmitOptions& options,
                 const std::vector<JobRequest>& requests, bool is_overlaid);

}  // namespace quasi::client

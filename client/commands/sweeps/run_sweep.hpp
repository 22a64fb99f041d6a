#pragma once

#include <string>
#include <vector>

#include "client/commands/run.hpp"
#include "quasi/v1/job.pb.h"

namespace quasi::client {

/// Runs the jobs of a sweep one after the other, each into a folder of its own below the output,
/// and writes sweep.csv there after each of them.
/// @param job      with the settings of the deck and of the command line
/// @param options  of the command; its settings are ignored, because `job` has them
ExitStatus run_sweep(Console& console, const RunCommandOptions& options, const v1::JobSpec& job);

}  // namespace quasi::client
